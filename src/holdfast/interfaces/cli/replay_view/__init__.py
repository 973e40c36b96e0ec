"""A walk through a session, as people see it at a terminal and as programs read it."""
