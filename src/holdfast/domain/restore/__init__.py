"""A restore as data: the plan, database steps, and selected paths or hunks."""
