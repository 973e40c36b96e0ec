"""Verifying a store and repairing what is damaged (a restore is verified by
`engine/restore/verifier.py`)."""
