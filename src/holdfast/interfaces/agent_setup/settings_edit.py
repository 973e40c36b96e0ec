"""Our entries in the settings of an agent: put in, taken out, found. Everything else stays.

Works on the text of a settings file; what is ours is told by the command alone, so that entries of
an older version, or that somebody moved, are found too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.interfaces.agent_setup.hook_entries import Entries, is_ours
from holdfast.interfaces.agent_setup.json_text import (
    Child,
    Node,
    NotJson,
    append,
    has_comments,
    plain,
    remove,
    scan,
)

_EMPTY = "{}\n"
_COMMANDS = ("command", "bash", "powershell")


@dataclass(frozen=True, slots=True)
class _Step:
    """On the way from the document to a value: which child of which container."""

    container: Node
    child: Child


def with_hooks(text: str | None, agent: str, entries: Entries, *, version: bool) -> str:
    """The settings with exactly these entries of ours. `version`: the file begins with one."""
    document = _object(text)
    if found_hooks(text, agent) == entries:
        return text or ""
    shown = without_hooks(text, agent) if text is not None else None
    if shown is None:
        shown = _EMPTY
        if version:
            shown = append(shown, scan(shown), 1, "version")
    elif version and document.member("version") is None:
        shown = append(shown, scan(shown), 1, "version")
    root = scan(shown)
    if root.member("hooks") is None:
        return append(shown, root, entries, "hooks")
    for event, items in entries.items():
        for item in items:
            hooks = _hooks(scan(shown))
            event_list = hooks.member(event)
            if event_list is None:
                shown = append(shown, hooks, [item], event)
            else:
                shown = append(shown, event_list, item)
    return shown


def without_hooks(text: str, agent: str) -> str | None:
    """The settings without what is ours; None when nothing else was in them."""
    before = text
    while True:
        root = _object(text)
        trail = next(_trails(root, agent), None)
        if trail is None:
            break
        step = _highest_of_ours_alone(text, trail)
        text = remove(text, step.container, step.child)
    if text == before or has_comments(text, 0, len(text)):
        return text
    if plain(scan(text)) in ({}, {"version": 1}):
        return None
    return text


def found_hooks(text: str | None, agent: str) -> Entries:
    """Our entries as they stand in the settings now, by event."""
    if text is None:
        return {}
    found: Entries = {}
    for trail in _trails(_object(text), agent):
        event, item = trail[1].child.key or "", plain(trail[2].child.value)
        if item not in found.setdefault(event, []):
            found[event].append(item)
    return found


def _object(text: str | None) -> Node:
    root = scan(text if text is not None else _EMPTY)
    if root.kind != "object":
        raise NotJson("the settings are not an object")
    hooks = root.member("hooks")
    if hooks is not None:
        _require(hooks, "object", "hooks")
        for child in hooks.children:
            if isinstance(child.value.plain, bool):
                continue  # a switch such as `enabled`
            _require(child.value, "list", f"hooks.{child.key}")
    return root


def _require(node: Node, kind: str, name: str) -> None:
    if node.kind != kind:
        raise NotJson(f"{name} is not {'an object' if kind == 'object' else 'a list'}")


def _hooks(root: Node) -> Node:
    hooks = root.member("hooks")
    if hooks is None:
        raise NotJson("hooks is not an object")
    return hooks


def _trails(root: Node, agent: str) -> Iterator[list[_Step]]:
    """The way to every handler of ours: hooks, event, item, and handler where items are groups."""
    for top in (c for c in root.children if c.key == "hooks" and c.value.kind == "object"):
        for event in (c for c in top.value.children if c.value.kind == "list"):
            for item in event.value.children:
                trail = [_Step(root, top), _Step(top.value, event), _Step(event.value, item)]
                if _is_handler(plain(item.value), agent):
                    yield trail
                    continue
                handlers = item.value.member("hooks") if item.value.kind == "object" else None
                for handler in handlers.children if handlers is not None else ():
                    if _is_handler(plain(handler.value), agent):
                        yield [*trail, _Step(handlers, handler)]  # type: ignore[arg-type]


def _is_handler(value: Any, agent: str) -> bool:
    return isinstance(value, dict) and any(is_ours(value.get(name), agent) for name in _COMMANDS)


def _highest_of_ours_alone(text: str, trail: list[_Step]) -> _Step:
    """What can go as a whole because nothing of anybody else is in it, not even a comment."""
    highest = trail[-1]
    for above, below in zip(reversed(trail[:-1]), reversed(trail[1:]), strict=True):
        if len(below.container.children) > 1:
            break
        if has_comments(text, above.child.start, above.child.value.end):
            break
        highest = above
    return highest
