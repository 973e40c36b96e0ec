"""The state of a repository in a few lines, for people; from the state alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.components.git.dirty import DIRTY
from holdfast.domain.component_states import ComponentState

_SHOWN = 5


def describe(state: ComponentState) -> Iterator[str]:
    if "head" in state.facts:
        yield from _own(state.facts, state.notes.get(DIRTY))
    elif not state.facts.get("nested"):
        yield "no repository"
    rows: Sequence[Mapping[str, Any]] = state.facts.get("nested", ())
    for row in rows[:_SHOWN]:
        said = "not captured" if "facts" not in row else "; ".join(_own(row["facts"]))
        yield f"{_clean(row['path'])}: {said}"
    if len(rows) > _SHOWN:
        yield f"and {_count(len(rows) - _SHOWN, 'nested repository', 'nested repositories')} more"
    for path, why in state.facts.get("nested_left_out", ()):
        yield f"{_clean(path) or 'nested repositories'}: left out, {_clean(why)}"


def _own(facts: Mapping[str, Any], dirty: Any = None) -> Iterator[str]:
    """`dirty` is as the capture noted it, if it did."""
    count, files = (dirty["count"], dirty["files"]) if isinstance(dirty, Mapping) else (0, [])
    yield _head(facts["head"]) + (f", {count:,} dirty" if count else "")
    if count:
        more = f" and {count - _SHOWN:,} more" if count > _SHOWN else ""
        yield f"dirty: {', '.join(_clean(name) for name in files[:_SHOWN])}{more}"
    if facts["operation"]:
        yield f"a {facts['operation']} is under way"
    if facts["staged_count"]:
        yield f"{_count(facts['staged_count'], 'path')} staged: {_some(facts['staged'])}"
    if facts["stash"]:
        yield f"{_count(len(facts['stash']), 'stash entry', 'stash entries')}"
    linked = [row for row in facts["worktrees"] if not row["here"]]
    if linked:
        yield f"{_count(len(linked), 'other worktree')}: " + ", ".join(
            _clean(row["path"]) for row in linked[:_SHOWN]
        )
    moved = [row for row in facts["submodules"] if row[1] != row[2]]
    if facts["submodules"]:
        off = f", {len(moved)} at another commit than the index says" if moved else ""
        yield f"{_count(len(facts['submodules']), 'submodule')}{off}"
    if facts["shallow"]:
        yield "a shallow clone"


def _head(head: dict[str, Any]) -> str:
    commit, ref = head["commit"], head["ref"]
    name = "detached" if ref is None else _clean(ref.removeprefix("refs/heads/"))
    return f"{name}, no commit yet" if commit is None else f"{name}@{commit[:7]}"


def _some(rows: list[list[str]]) -> str:
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    return ", ".join(f"{status} {_clean(path)}" for status, path in rows[:_SHOWN]) + more


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def _count(number: int, noun: str, many: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"
