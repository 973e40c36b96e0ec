"""Verifies a store and repairs damage (a restore is verified by
`engine/restore/verifier.py`)."""
