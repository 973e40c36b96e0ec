"""JSON with comments as a text that is edited, not written anew: every other byte stays.

    scan the text to nodes with their places → insert or remove one child → scan again

Comments, order, indentation, line ends and trailing commas are the user's. What `append` inserts,
`remove` takes out again to the byte, unless the container was empty.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_DEEPEST = 200
_BEHIND = re.compile(r"[ \t]*(?://[^\n\r]*|/\*[^\n]*?\*/[ \t]*)?(?=\r?\n)")


class NotJson(Exception):
    """The text is not JSON; where and why."""


@dataclass(slots=True)
class Child:
    """A member of an object (with its key) or an item of a list; `start` is where it begins."""

    key: str | None
    start: int
    value: Node


@dataclass(slots=True)
class Node:
    """A value and its place; `children` of an object or a list."""

    kind: str
    start: int
    end: int
    plain: Any = None
    children: list[Child] = field(default_factory=list)

    def member(self, key: str) -> Node | None:
        found = [child.value for child in self.children if child.key == key]
        return found[-1] if found else None


def scan(text: str) -> Node:
    """The whole document; an empty one is an empty object that is not there yet."""
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
    """The value of the document, comments and trailing commas allowed."""
    return plain(scan(text))


def plain(node: Node) -> Any:
    if node.kind == "object":
        return {str(child.key): plain(child.value) for child in node.children}
    if node.kind == "list":
        return [plain(child.value) for child in node.children]
    return node.plain


def append(text: str, container: Node, value: Any, key: str | None = None) -> str:
    """The text with one more child at the end of the container."""
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
    comma = _comma_behind(text, last.value.end)
    shown = f"{newline}{indent}{label}{_shown(text, value, indent, newline)}"
    after = last.value.end if comma is None else comma + 1
    behind = _BEHIND.match(text, after)
    place = after if behind is None else behind.end()
    if comma is None:
        return text[:after] + "," + text[after:place] + shown + text[place:]
    return text[:place] + shown + "," + text[place:]


def remove(text: str, container: Node, child: Child) -> str:
    """The text without one child of the container."""
    position = container.children.index(child)
    comma = _comma_behind(text, child.value.end)
    is_last = position == len(container.children) - 1
    if len(container.children) == 1:
        inner = text[container.start + 1 : child.start].rstrip()
        rest = text[(child.value.end if comma is None else comma + 1) : container.end - 1]
        if not inner.strip() and not rest.strip():
            return text[: container.start + 1] + text[container.end - 1 :]
        return text[: container.start + 1] + inner + rest + text[container.end - 1 :]
    on_its_own_line = re.search(r"\r?\n[ \t]*\Z", text[: child.start])
    end = child.value.end if comma is None else comma + 1
    if on_its_own_line is None:
        if not is_last:
            return text[: child.start] + text[container.children[position + 1].start :]
        before = container.children[position - 1].value.end
        return text[:before] + text[child.value.end :]
    start = on_its_own_line.start()
    without = text[:start] + text[end:]
    if is_last and comma is None:
        between = _comma_behind(text, container.children[position - 1].value.end)
        if between is not None:
            without = without[:between] + without[between + 1 :]
    return without


def _shown(text: str, value: Any, indent: str, newline: str) -> str:
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return newline.join([lines[0], *(indent + line for line in lines[1:])])


def _unit(text: str) -> str:
    """One step of indentation, as the document has it."""
    found = re.search(r"\n([ \t]+)\S", text)
    if found is None:
        return "  "
    return "\t" if found[1][0] == "\t" else found[1]


def _indent_of(text: str, place: int) -> str:
    begin = text.rfind("\n", 0, place) + 1
    found = re.match(r"[ \t]*", text[begin:place])
    return found[0] if found else ""


def _comma_behind(text: str, place: int) -> int | None:
    """Where the comma behind a value is, comments looked through."""
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
