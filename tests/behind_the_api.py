"""The engine and the store of a session, for tests of what is behind the api."""

from __future__ import annotations

from holdfast import SessionCheckpointer
from holdfast.adapters.local.local_store import LocalStore
from holdfast.app.open_workspace import OpenWorkspace
from holdfast.engine.engine import Engine


def engine_of(session: SessionCheckpointer) -> Engine:
    return session.opened._opened.engine


def store_of(session: SessionCheckpointer) -> LocalStore:
    return local_store(session.opened._opened)


def local_store(opened: OpenWorkspace) -> LocalStore:
    assert isinstance(opened.store, LocalStore)
    return opened.store
