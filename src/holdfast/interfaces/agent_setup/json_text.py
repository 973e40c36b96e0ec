"""JSON with comments, edited as text: every other byte is kept.

    scan the text into nodes with positions → insert or remove one child → scan again

Comments, order, indentation, line ends and trailing commas belong to the user. `remove` reverts
`append` into a non-empty container, to the byte. `cut` reverts `put` into an empty one, which a
space on both sides of the child marks.
"""

from __future__ import annotations

import json
import re
from typing import Any

from holdfast.values.classes import dataclass, field

_SPACE = re.compile(r"[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/", re.DOTALL)
# Match runs of ordinary characters at once: settings may contain megabytes of history in one
# string.
_STRING = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"')
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_DEEPEST = 200
_NOTEWORTHY = re.compile(_STRING.pattern + r"|//|/\*")
_OWN_LINE = re.compile(r"\r?\n[ \t]*\Z")
_LINE_ENDS = re.compile(r"[ \t]*\r?\n")
_BEHIND = re.compile(r"[ \t]*(?://[^\n\r]*|/\*(?:(?!\*/)[^\n])*\*/[ \t]*)?(?=\r?\n)")
_NOTES_AND_STRINGS = re.compile(_STRING.pattern + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)


class NotJson(Exception):
    """The text is not JSON; the message says where and why."""


@dataclass(slots=True)
class Child:
    """A member of an object (with its key) or an item of a list; `start` is its position."""

    key: str | None
    start: int
    value: Node


@dataclass(slots=True)
class Node:
    """A value and its position; `children` if it is an object or a list."""

    kind: str
    start: int
    end: int
    plain: Any = None
    children: list[Child] = field(default_factory=list)

    def member(self, key: str) -> Node | None:
        found = [child.value for child in self.children if child.key == key]
        return found[-1] if found else None


def scan(text: str) -> Node:
    """The whole document. An empty file counts as a missing empty object."""
    scanner = _Scanner(text)
    scanner.skip()
    if scanner.at == len(text):
        raise NotJson("the file is empty")
    node = scanner.value(0)
    scanner.skip()
    if scanner.at != len(text):
        raise scanner.error("more text behind the value")
    return node


def load(text: str) -> Any:
    """The value of the document; comments and trailing commas are allowed."""
    return plain(scan(text))


def plain(node: Node) -> Any:
    if node.kind == "object":
        return {str(child.key): plain(child.value) for child in node.children}
    if node.kind == "list":
        return [plain(child.value) for child in node.children]
    return node.plain


def append(text: str, container: Node, value: Any, key: str | None = None) -> str:
    """The text with a new last child in the container."""
    newline = "\r\n" if "\r\n" in text else "\n"
    base = _indent_of(text, container.start)
    label = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    if not container.children:
        indent = base + _unit(text)
        inner = text[container.start + 1 : container.end - 1].rstrip()
        shown = f"{newline}{indent}{label}{_shown(text, value, indent, newline)}{newline}{base}"
        return text[: container.start + 1] + inner + shown + text[container.end - 1 :]
    last = container.children[-1]
    if "\n" not in text[container.start : last.start]:
        compact = json.dumps(value, ensure_ascii=False)
        return f"{text[: last.value.end]}, {label}{compact}{text[last.value.end :]}"
    indent = _indent_of(text, last.start)
    comma = _comma_after(text, last.value.end)
    shown = f"{newline}{indent}{label}{_shown(text, value, indent, newline)}"
    after = last.value.end if comma is None else comma + 1
    behind = _BEHIND.match(text, after)
    place = after if behind is None else behind.end()
    if comma is None:
        return text[:after] + "," + text[after:place] + shown + text[place:]
    return text[:place] + shown + "," + text[place:]


def remove(text: str, container: Node, child: Child) -> str:
    """The text without one child: its own bytes, one comma and the space around it. Comments around
    it belong to the user, and are kept on their own line."""
    position = container.children.index(child)
    if position > 0 and child is container.children[-1]:
        before = container.children[position - 1].value.end
        if text[before : child.start] == ", ":  # as `append` writes on a single line
            return text[:before] + text[child.value.end :]
    comma = _comma_after(text, child.value.end)
    start, behind = child.start, text[child.value.end :]
    if comma is not None:
        behind = text[child.value.end : comma] + text[comma + 1 :]
    elif position > 0:
        between = _comma_after(text, container.children[position - 1].value.end)
        assert between is not None  # there is one between two children
        text, start = text[:between] + text[between + 1 :], start - 1
    own_line = _OWN_LINE.search(text, container.start, start)
    if own_line is not None and (
        _LINE_ENDS.match(behind)
        or (child is container.children[-1] and not _ends_in_comment(text, own_line.start()))
    ):
        start = own_line.start()
        if len(container.children) == 1 and own_line.start() == container.start + 1:
            behind = behind.lstrip()  # nothing remains between the brackets
            behind = behind if behind[:1] in ("}", "]") else own_line[0] + behind
    elif own_line is None and comma is None:
        start = len(text[:start].rstrip(" \t"))
    else:
        behind = behind.lstrip(" \t")
    return text[:start] + behind


def put(text: str, container: Node, value: Any, key: str | None = None) -> str:
    """The text with a new child. An empty container gets marking spaces, so that `cut` can empty it
    again."""
    if container.children:
        return append(text, container, value, key)
    newline = "\r\n" if "\r\n" in text else "\n"
    label = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    place = container.start + 1
    shown = _shown(text, value, _indent_of(text, container.start), newline)
    return f"{text[:place]} {label}{shown} {text[place:]}"


def was_empty(text: str, container: Node, child: Child) -> bool:
    """Whether `put` inserted the child into an empty container."""
    end = child.value.end
    before, behind = text[container.start + 1 : child.start], text[end : end + 1]
    return len(container.children) == 1 and (before, behind) == (" ", " ")


def cut(text: str, container: Node, child: Child) -> str:
    """The text without a child that `put` inserted into an empty container."""
    return text[: container.start + 1] + text[child.value.end + 1 :]


def has_comments(text: str, start: int, end: int) -> bool:
    """Whether there is a comment between two positions; text in quotes does not count."""
    return any(match[0][0] == "/" for match in _NOTEWORTHY.finditer(text, start, end))


def _ends_in_comment(text: str, end: int) -> bool:
    """Whether a comment ends there, so that nothing may follow it on its line."""
    last = [*_NOTES_AND_STRINGS.finditer(text, 0, end)][-1:]
    return any(found.end() == end and found[0].startswith("//") for found in last)


def _shown(text: str, value: Any, indent: str, newline: str) -> str:
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return newline.join([lines[0], *(indent + line for line in lines[1:])])


def _unit(text: str) -> str:
    """One step of indentation, as the document uses it."""
    found = re.search(r"\n([ \t]+)\S", text)
    if found is None:
        return "  "
    return "\t" if found[1][0] == "\t" else found[1]


def _indent_of(text: str, place: int) -> str:
    begin = text.rfind("\n", 0, place) + 1
    found = re.match(r"[ \t]*", text[begin:place])
    return found[0] if found else ""


def _comma_after(text: str, place: int) -> int | None:
    """The position of the comma after a value; comments between them are skipped."""
    while match := _SPACE.match(text, place):
        place = match.end()
    return place if text[place : place + 1] == "," else None


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def error(self, why: str) -> NotJson:
        line = self._text.count("\n", 0, self.at) + 1
        column = self.at - self._text.rfind("\n", 0, self.at)
        return NotJson(f"line {line}, column {column}: {why}")

    def skip(self) -> None:
        while match := _SPACE.match(self._text, self.at):
            self.at = match.end()

    def value(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self.error("nested too deeply")
        start, opening = self.at, self._text[self.at : self.at + 1]
        if opening in ("{", "["):
            return self._container(start, opening, depth)
        if opening == '"':
            text = self._string()
            return Node("text", start, self.at, text)
        match = _SCALAR.match(self._text, self.at)
        if match is None:
            raise self.error("a value is expected")
        try:
            number = json.loads(match[0])
        except ValueError as error:  # more digits than Python reads
            raise self.error(str(error)) from None
        self.at = match.end()
        return Node("scalar", start, self.at, number)

    def _container(self, start: int, opening: str, depth: int) -> Node:
        closing = "}" if opening == "{" else "]"
        node = Node("object" if opening == "{" else "list", start, start)
        self.at += 1
        while True:
            self.skip()
            if self._text[self.at : self.at + 1] == closing:
                self.at += 1
                node.end = self.at
                return node
            begins, key = self.at, None
            if opening == "{":
                key = self._string()
                self.skip()
                self._take(":")
                self.skip()
            node.children.append(Child(key, begins, self.value(depth + 1)))
            self.skip()
            if self._text[self.at : self.at + 1] != closing:
                self._take(",")

    def _take(self, wanted: str) -> None:
        if self._text[self.at : self.at + 1] != wanted:
            raise self.error(f"{wanted!r} is expected")
        self.at += 1

    def _string(self) -> str:
        match = _STRING.match(self._text, self.at)
        if match is None:
            raise self.error("a text in double quotes is expected")
        try:
            text: str = json.loads(match[0], strict=False)
        except ValueError as error:
            raise self.error(str(error)) from None
        self.at = match.end()
        return text
