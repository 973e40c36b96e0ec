"""Adds, removes and finds Holdfast's hook entries in an agent's settings. All other text is kept.

Works on the text of a settings file. Entries are recognised by their command alone, so old and
moved entries are found too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from holdfast.interfaces.agent_setup.holdfast_command import own_command_length
from holdfast.interfaces.agent_setup.json_text import (
    Child,
    Node,
    NotJson,
    append,
    cut,
    has_comments,
    plain,
    put,
    remove,
    scan,
    was_empty,
)
from holdfast.interfaces.agents.agent import Entries
from holdfast.values.classes import dataclass

_EMPTY = "{}\n"
_COMMANDS = ("command", "bash", "powershell")


def is_our_command(command: Any, agent: str) -> bool:
    """Whether `install`, of any version, wrote the whole command. Commands that the user extended
    are kept."""
    if not calls_us(command, agent):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    called = own_command_length(words)
    if called is None or words[called : called + 2] != ["hook", agent]:
        return False
    rest = words[called + 2 :]
    rest = rest[:-2] if rest[-2:] == ["||", "true"] else rest
    return len(rest) < 2 and all(word.isalnum() for word in rest)


def calls_us(command: Any, agent: str) -> bool:
    """Whether a command calls Holdfast's hook for an agent, alone or among other commands."""
    if not isinstance(command, str):
        return False
    called = rf"(?:^|[\s/'\"])holdfast['\"]?\s+hook\s+{re.escape(agent)}(?![\w-])"
    return re.search(called, command) is not None


@dataclass(frozen=True, slots=True)
class _Step:
    """One step on the path from the document to a value: a container, and a child of it."""

    container: Node
    child: Child


def with_hooks(text: str | None, agent: str, entries: Entries, *, version: bool) -> str:
    """The settings with exactly these Holdfast entries. With `version`, the file needs a version
    number. Holdfast appends its own after the hooks; a number before them is the user's."""
    if text is not None and found_hooks(text, agent) == entries:
        return text
    shown = without_hooks(text, agent, version=version) if text is not None else None
    if shown is None:
        shown = append(_EMPTY, scan(_EMPTY), entries, "hooks")
    elif scan(shown).member("hooks") is None:
        shown = put(shown, scan(shown), entries, "hooks")
    else:
        shown = _with_events(shown, entries)
    if version and scan(shown).member("version") is None:
        shown = append(shown, scan(shown), 1, "version")
    return shown


def _with_events(text: str, entries: Entries) -> str:
    for event, items in entries.items():
        for item in items:
            hooks = scan(text).member("hooks")
            assert hooks is not None
            event_list = hooks.member(event)
            if event_list is None:
                text = put(text, hooks, [item], event)
            else:
                text = put(text, event_list, item)
    return text


def without_hooks(text: str, agent: str, *, version: bool) -> str | None:
    """The settings as they were before `install`; None if `install` created the file. Entries are
    removed in reverse order."""
    before, was_there = text, False
    while True:
        root = _object(text)
        trails = list(_trails(root, agent))
        if not trails:
            break
        trail = trails[-1]
        step = _largest_removable(text, trail)
        if _fills_empty_container(text, trail, step):
            text, was_there = cut(text, step.container, step.child), True
        elif version and step is trail[0] and _is_version(root.children[-1], step.child):
            text = remove(text, root, root.children[-1])
        else:
            text = remove(text, step.container, step.child)
    if text == before or was_there or has_comments(text, 0, len(text)):
        return text
    return None if plain(scan(text)) == {} else text


def _is_version(last: Child, hooks: Child) -> bool:
    """Whether Holdfast added the version number, which is then directly after the hooks."""
    return last.key == "version" and last is not hooks and plain(last.value) == 1


def found_hooks(text: str, agent: str) -> Entries:
    """Holdfast's entries in the current settings, by event."""
    found: Entries = {}
    for trail in _trails(_object(text), agent):
        event, item = trail[1].child.key or "", plain(trail[2].child.value)
        if item not in found.setdefault(event, []):
            found[event].append(item)
    return found


def hook_program(text: str, agent: str) -> str | None:
    """The words before `hook AGENT` in Holdfast's first command."""
    for trail in _trails(_object(text), agent):
        handler = plain(trail[-1].child.value)
        command = next(
            handler[name] for name in _COMMANDS if is_our_command(handler.get(name), agent)
        )
        return str(command).partition(f" hook {agent}")[0]
    return None


def edited_commands(text: str, agent: str) -> list[str]:
    """Commands that call Holdfast's hook among other commands, and so are the user's."""
    found: list[str] = []
    for top in (c for c in _object(text).children if c.key == "hooks"):
        waiting = [plain(top.value)]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                commands = [value[name] for name in _COMMANDS if name in value]
                found += [
                    t for t in commands if calls_us(t, agent) and not is_our_command(t, agent)
                ]
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value
    return found


def _object(text: str) -> Node:
    root = scan(text)
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


def _trails(root: Node, agent: str) -> Iterator[list[_Step]]:
    """The path to each Holdfast handler: hooks, event, item, and the handler if items are
    groups."""
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
    return isinstance(value, dict) and any(
        is_our_command(value.get(name), agent) for name in _COMMANDS
    )


def _fills_empty_container(text: str, trail: list[_Step], step: _Step) -> bool:
    """Whether the entry is in a list or object of the user that was empty. Handlers do not count,
    because whole groups are inserted."""
    is_handler = len(trail) > 3 and step is trail[3]
    return not is_handler and was_empty(text, step.container, step.child)


def _largest_removable(text: str, trail: list[_Step]) -> _Step:
    """The highest step that can be removed as a whole: it contains no other entry, no comment, and
    no list or object that was empty before."""
    highest = trail[-1]
    for above, below in zip(reversed(trail[:-1]), reversed(trail[1:]), strict=True):
        if len(below.container.children) > 1 or _fills_empty_container(text, trail, below):
            break
        if has_comments(text, above.child.start, above.child.value.end):
            break
        highest = above
    return highest
