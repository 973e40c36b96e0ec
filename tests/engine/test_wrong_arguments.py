"""Whatever is passed to a session: it works, or it is refused by name before anything is done."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import HoldfastError, NotFound, UsageError
from tests.support.session_states import line_end
from tests.support.tree_hash import describe

pytestmark = pytest.mark.requirement("CP-1", "CP-4", "SE-6")


class Stranger:
    def __repr__(self) -> str:
        return "<a stranger>"


def _wrong() -> list[Any]:
    return [
        *(None, "", "\0", "\udcff", "\ud800", "x" * 100_000, "../x", "/etc/passwd", b"x"),
        *(True, 5, -1, 1.5, 10**30, -(10**30), math.nan),
        *([], [None], [5], ["\0"], [[]], [Stranger()], ("app.py",), {}, {"git": 5}, {5: 5}),
        *(Path("app.py"), Stranger(), iter([])),
    ]


OPEN: Any = SessionCheckpointer
GOOD: dict[str, Any] = {
    "reasoning": "why",
    "reference": "HEAD",
    "path": "app.py",
    "paths": ["app.py"],
    "query": "why",
    "agent_id": "a",
    "state": {"a": 1},
    "role": "user",
    "content": "said",
    "text": "noted",
    "name": "first",
    "number": 1,
}
ENDS_IT = {"close"}
CLASS_METHODS = {"load", "start", "import_bundle"}


def _methods() -> Iterator[str]:
    for name, found in inspect.getmembers(SessionCheckpointer, callable):
        is_one = not name.startswith("_") and name not in ENDS_IT | CLASS_METHODS
        if is_one and [p for p in inspect.signature(found).parameters if p != "self"]:
            yield name


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "app.py").write_text("print(1)\n")
    return workspace


@pytest.fixture
def session(workspace: Path) -> Iterator[SessionCheckpointer]:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why", name="first")
        yield session


def _try(session: SessionCheckpointer, name: str, wrong: str, value: Any, place: Path) -> None:
    """One call with one argument that is odd, and whatever it needs besides."""
    found = getattr(session, name)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for argument in inspect.signature(found).parameters.values():
        if argument.kind is argument.VAR_POSITIONAL:
            positional += [value] if argument.name == wrong else []
        elif argument.name == wrong:
            named[argument.name] = value
        elif argument.default is argument.empty:
            named[argument.name] = GOOD[argument.name]
    if name.startswith(("export", "import")) and wrong != "path":
        named["path"] = place
    if positional:
        positional = [named.pop("path"), *positional] if "path" in named else positional
    answer = found(*positional, **named)
    if name in ("editing", "attempt"):
        with answer:
            pass
    elif name == "guarded":
        answer(lambda: None)()
    elif name == "start_edit":
        session.abort_edit()
    elif isinstance(answer, AbstractContextManager):
        with answer:
            pass


@pytest.mark.parametrize("name", sorted(_methods()))
def test_every_argument_is_taken_or_refused_by_the_family(
    session: SessionCheckpointer, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = list(inspect.signature(getattr(session, name)).parameters)
    refused = []
    for wrong in arguments:
        for number, value in enumerate(_wrong()):
            place = tmp_path / f"{wrong}-{number}"
            try:
                _try(session, name, wrong, value, place)
            except HoldfastError as error:
                refused.append(error.message)
    assert refused
    assert all(refused)
    assert not session.open_edits()


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda s: s.start_edit(None), "paths"),
        (lambda s: s.start_edit(""), "paths"),
        (lambda s: s.start_edit([]), "path"),
        (lambda s: s.start_edit([""]), "paths"),
        (lambda s: s.start_edit([None]), "paths"),
        (lambda s: s.start_edit(5), "paths"),
        (lambda s: s.start_edit(["app.py"], reason=5), "reason"),
        (lambda s: s.editing(None), "paths"),
        (lambda s: s.finalize_edit("1"), "number"),
        (lambda s: s.abort_edit(1.0), "number"),
        (lambda s: s.edit_diff(None), "number"),
        (lambda s: s.restore(5), "snapshot_id"),
        (lambda s: s.restore_checkpoint("HEAD", "app.py"), "paths"),
        (lambda s: s.restore_checkpoint("HEAD", []), "paths"),
        (lambda s: s.restore_checkpoint("HEAD", best_effort="no"), "best_effort"),
        (lambda s: s.restore_checkpoint("HEAD", components=["git"]), "components"),
        (lambda s: s.restore_checkpoint("HEAD", ["app.py"], hunks=[1.5]), "hunks"),
        (lambda s: s.get(None), "reference"),
        (lambda s: s.get_by_name(None), "name"),
        (lambda s: s.diff(5), "from_id"),
        (lambda s: s.history(-1), "limit"),
        (lambda s: s.history("ten"), "limit"),
        (lambda s: s.summaries(limit=1.5), "limit"),
        (lambda s: s.timeline(before=5), "position"),
        (lambda s: s.messages(first="0"), "index"),
        (lambda s: s.why(None), "path"),
        (lambda s: s.hunks("HEAD", b"app.py"), "path"),
        (lambda s: s.export(None), "path"),
        (lambda s: s.purge_paths(None), "paths"),
        (lambda s: s.checkpoint("why", tags=5), "tags"),
        (lambda s: s.checkpoint("why", tool_calls=None), "tool_calls"),
        (lambda s: OPEN(None, "s"), "workspace"),
        (lambda s: OPEN("", "s"), "workspace"),
        (lambda s: OPEN(s.workspace, "s", "*.py"), "file_filter"),
        (lambda s: OPEN.load(5, "s"), "workspace"),
        (lambda s: OPEN.start(s.workspace, title=5), "title"),
        (lambda s: OPEN.import_bundle(s.workspace, None), "path"),
    ],
)
def test_what_is_of_the_wrong_kind_is_named(
    session: SessionCheckpointer, call: Callable[[Any], object], named: str
) -> None:
    before, head = describe(session.workspace), line_end(session)
    with pytest.raises(UsageError, match=named):
        call(session)
    assert (describe(session.workspace), line_end(session)) == (before, head)
    assert session.activities() == []


def test_what_has_a_meaning_still_has_it(session: SessionCheckpointer) -> None:
    paths: list[str | Path] = [Path("app.py"), str(session.workspace / "new.py")]
    number = session.start_edit(iter(paths))
    assert session.finalize_edit(number).number == number
    assert session.history(10**30) == session.history(None)
    assert session.history(0) == []
    anyhow: Any = (Path("app.py"),)
    assert session.restore_checkpoint("first", anyhow).restored_to
    assert session.checkpoint("tagged", tags={"x"}, tool_calls=(c for c in ["Bash"]))
    assert session.history(1)[0].intent.tags == ("x",)
    assert inspect.signature(session.restore).parameters["snapshot_id"].default is None


@pytest.mark.requirement("CP-8")
def test_the_edits_of_another_session_are_not_there(session: SessionCheckpointer) -> None:
    number = session.start_edit(["app.py"])
    (session.workspace / "app.py").write_text("print(2)\n")
    with SessionCheckpointer(session.workspace, "other") as other:
        other.checkpoint("theirs")
        for forbidden in (other.finalize_edit, other.abort_edit, other.edit_diff):
            with pytest.raises(NotFound, match=f"no such edit or attempt: {number}"):
                forbidden(number)
    session.finalize_edit(number)
    assert "print(2)" in (session.edit_diff(number) or "")


def test_an_edit_that_does_not_exist_has_no_difference(session: SessionCheckpointer) -> None:
    for number in (999, 0, -1, 10**30):
        with pytest.raises(NotFound, match="no such edit or attempt"):
            session.edit_diff(number)
    number = session.start_edit(["app.py"])
    assert session.edit_diff(number) is None
    session.abort_edit(number)
    assert session.edit_diff(number) is None


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.search("why", limit=0),
        lambda session: session.timeline(limit=0),
        lambda session: session.start_edit([]),
        lambda session: session.start_edit([".holdfast/id"]),
        lambda session: session.restore_checkpoint("HEAD", ["app.py"], hunks=[1]),
        lambda session: session.annotate("HEAD", "text", author="x" * 1_000),
    ],
    ids=["hits", "events", "no path", "our own", "no hunk", "author"],
)
def test_what_is_refused_is_refused_with_a_way_out(
    tmp_path: Path, ask: Callable[[SessionCheckpointer], object]
) -> None:
    (tmp_path / "app.py").write_text("1\n")
    with SessionCheckpointer(tmp_path, "s") as session:
        session.checkpoint("why")
        with pytest.raises(HoldfastError) as refused:
            ask(session)
        assert refused.value.hint
