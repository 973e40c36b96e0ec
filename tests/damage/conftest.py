"""Damage is a campaign like the others: a slice for `make test`, all of it for `make torture`."""

from __future__ import annotations

from tests.torture.conftest import campaign, long_campaign, quick_disk

__all__ = ["campaign", "long_campaign", "quick_disk"]
