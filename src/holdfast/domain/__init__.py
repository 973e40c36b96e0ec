"""Values and pure functions, without I/O, clock, randomness or environment. The rules are here:
`triggers.py` (when to save), `retention.py` (what expires), `errors.py`, `events.py`."""
