"""Calling a hook inside the test's own process, as the daemon handles an event.

For tests of what a hook decides, saves and answers. Those of the process itself, of its privileges
and of several hooks at once start one: see `hook_process` and `forked_commands`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from holdfast.interfaces.cli.main import main
from tests.support.hook_process import HookAnswer, event_bytes, inherited_variables


def call_hook(
    agent: str,
    event: Mapping[str, Any] | bytes,
    workspace: Path,
    *,
    environment: Mapping[str, str] | None = None,
    arguments: tuple[str, ...] = (),
) -> HookAnswer:
    """Run the hook where an agent would: in the workspace, with the agent's environment."""
    out, err = io.StringIO(), io.StringIO()
    variables = {**inherited_variables(), **(environment or {})}
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        _given(event_bytes(event)),
        _variables(variables),
        chdir(workspace),
    ):
        status = main(["hook", agent, *arguments])
    return HookAnswer(status, out.getvalue(), err.getvalue())


@contextmanager
def _given(event: bytes) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(event), encoding="utf-8")
    try:
        yield
    finally:
        sys.stdin = before


@contextmanager
def _variables(these: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(these)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
