"""Long-running operations: a client waits a moment, then polls the operation by its id.

    request → the work begins in its own thread → done soon: the usual answer
    → else 202, and progress at its address

Guarantee: the work continues if the client disconnects. The newest results are kept for a while.
The number of running operations is limited; more are refused.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypedDict

from starlette.requests import Request

from holdfast.api.workspace import Workspace
from holdfast.domain.errors import Busy, NotFound
from holdfast.interfaces.web.problems import Problem, log_bug, problem_of
from holdfast.interfaces.web.routing import (
    Answer,
    OtherAnswer,
    address,
    served,
    server_of,
    workspace_id,
)

_MOST_KEPT = 100
_MOST_RUNNING = 32
_PATIENCE_S = 2.0


class OperationView(TypedDict):
    """A long-running operation. `status` is `running`, `done` or `failed`; `total` is null if
    unknown. `result` is the answer of the request, and `problem` says why it failed."""

    id: str
    kind: str
    workspace_id: str | None
    status: str
    phase: str | None
    done: int
    total: int | None
    bytes: int
    result: Any
    problem: Problem | None


LATER = {202: OtherAnswer("Still running; the URL in Location shows the progress", OperationView)}
"""For routes that call `run_long`."""


class Operation:
    """One operation, which also receives the progress of its work."""

    def __init__(
        self,
        identifier: str,
        kind: str,
        workspace: str | None,
        changed: Callable[[Operation], None],
    ) -> None:
        self.id, self.kind, self.workspace = identifier, kind, workspace
        self._changed = changed
        self._phase: str | None = None
        self._done = self._bytes = 0
        self._total: int | None = None
        self._answer: Answer | None = None
        self._error: BaseException | None = None
        self.finished = threading.Event()

    def advance(self, phase: str, done: int, total: int | None) -> None:
        self._phase, self._done, self._total = phase, done, total
        self._changed(self)

    def transferred(self, size_bytes: int) -> None:
        self._bytes = size_bytes
        self._changed(self)

    def run(self, work: Callable[[Operation], Answer]) -> None:
        try:
            self._answer = work(self)
        except BaseException as error:
            self._error = error
            log_bug(error)
        self.finished.set()
        self._changed(self)

    def answer(self) -> Answer:
        """The answer of finished work; re-raises its error."""
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer

    def view(self) -> OperationView:
        status = "running"
        if self.finished.is_set():
            status = "done" if self._error is None else "failed"
        return {
            "id": self.id,
            "kind": self.kind,
            "workspace_id": self.workspace,
            "status": status,
            "phase": self._phase,
            "done": self._done,
            "total": self._total,
            "bytes": self._bytes,
            "result": None if self._answer is None else self._answer.view,
            "problem": None if self._error is None else problem_of(self._error),
        }


class Operations:
    """The newest operations by id; thread-safe."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._known: OrderedDict[str, Operation] = OrderedDict()
        self._lock = threading.Lock()
        self._is_reporting = threading.Lock()
        self.patience_s = _PATIENCE_S
        self.listener: Callable[[Operation], None] = lambda operation: None
        """Called when an operation advances or ends."""

    def start(
        self, kind: str, workspace: str | None, work: Callable[[Operation], Answer]
    ) -> Operation:
        operation = Operation(self._new_id()[:20], kind, workspace, lambda one: self.listener(one))
        with self._lock:
            running = sum(not one.finished.is_set() for one in self._known.values())
            if running >= _MOST_RUNNING:
                raise Busy(
                    f"{running} operations are running already",
                    hint="try again when some of them are done",
                )
            self._known[operation.id] = operation
            finished = [one for one in self._known.values() if one.finished.is_set()]
            for old in finished[: max(len(self._known) - _MOST_KEPT, 0)]:
                del self._known[old.id]
        # Not a daemon thread: the server exits when the work is done.
        threading.Thread(target=operation.run, args=(work,), name=f"holdfast {kind}").start()
        return operation

    @contextmanager
    def reporting(self, workspace: Workspace, operation: Operation) -> Iterator[None]:
        """Report progress within the block, unless another operation does. A workspace has one
        listener, and only one operation at a time changes it anyway."""
        if not self._is_reporting.acquire(blocking=False):
            yield
            return
        try:
            with workspace.report_progress(operation):
                yield
        finally:
            self._is_reporting.release()

    def get(self, identifier: str) -> Operation:
        with self._lock:
            found = self._known.get(identifier)
        if found is None:
            raise NotFound(f"unknown operation: {identifier!r}", hint="its result is not kept")
        return found


def run_long(
    request: Request, kind: str, work: Callable[[Workspace], Answer], *, create: bool = False
) -> Answer:
    """The answer, or 202 if it takes long or the client prefers not to wait."""
    operations = server_of(request).operations

    def in_workspace(operation: Operation) -> Answer:
        with (
            served(request, create=create) as workspace,
            operations.reporting(workspace, operation),
        ):
            return work(workspace)

    operation = operations.start(kind, workspace_id(request), in_workspace)
    prefers = request.headers.get("prefer", "")
    if operation.finished.wait(0 if "respond-async" in prefers else operations.patience_s):
        return operation.answer()
    place = address(request, "operations", operation.id)
    headers = {"location": place, "retry-after": "1"}
    return Answer(operation.view(), 202, headers)
