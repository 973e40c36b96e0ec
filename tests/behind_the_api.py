"""The engine and the store of a session, for tests of what is behind the api."""

from __future__ import annotations

from holdfast import SessionCheckpointer
from holdfast.adapters.local.local_store import LocalStore
from holdfast.engine.engine import Engine


def engine_of(session: SessionCheckpointer) -> Engine:
    return session.opened._opened.engine


def store_of(session: SessionCheckpointer) -> LocalStore:
    return session.opened._opened.store
