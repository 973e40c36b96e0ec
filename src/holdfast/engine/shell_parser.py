"""Parses a shell command line, with the bash grammar if it helps, otherwise with a tokenizer.

    plain words and separators → tokenizer; quotes, substitutions, here-documents → grammar
    too long, or likely to keep the parser busy → tokenizer

Guarantee: an answer for every text, in bounded time. The tree is walked without recursion, and the
tokenizer also reads parts that the parser could not handle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.domain.shell.commands import (
    MOST_COMMANDS,
    SUBSTITUTION,
    Redirect,
    ShellCommand,
    ShellScript,
    read_script,
)

if TYPE_CHECKING:
    from tree_sitter import Language, Node

MOST_PARSED_BYTES = 8_192
# Unclosed openings and control characters make the parser's time quadratic.
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MOST_OPENINGS = 400
_OPENINGS = re.compile(r"<<|[({\[`]")
_SIMPLE = re.compile(r"[\w\s./,:=@%+*?~!-]*(?:(?:&&|\|\||[;|])[\w\s./,:=@%+*?~!-]*)*\Z")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_WRITES = (">", ">>", "&>", "&>>", ">|", "<>", ">&")
_SUBSHELLS = ("subshell", "command_substitution", "process_substitution")
_LISTS = ("list", "pipeline")
_JOINED = ("concatenation", "command_name", "translated_string", "variable_assignment")
_REDIRECTS = ("file_redirect", "heredoc_redirect", "herestring_redirect")


def parse(text: str) -> ShellScript:
    """The simple commands of a text, those in substitutions and in called shells included."""
    if _SIMPLE.match(text[:MOST_PARSED_BYTES]) and len(text) <= MOST_PARSED_BYTES:
        return read_script(text)
    source = text.encode("utf-8", "replace")
    costly = len(source) > MOST_PARSED_BYTES or _CONTROL_CHARACTERS.search(text) is not None
    costly = costly or len(_OPENINGS.findall(text)) > _MOST_OPENINGS
    language = None if costly else _language()
    if language is None:
        return read_script(text)
    from tree_sitter import Parser

    tree = Parser(language).parse(source)  # not shared: a parser is not thread-safe
    commands = _commands(tree.root_node)
    if tree.root_node.has_error:
        commands += read_script(text).commands
    return ShellScript(tuple(commands[:MOST_COMMANDS]), len(commands) <= MOST_COMMANDS)


@lru_cache(maxsize=1)
def _language() -> Language | None:
    """The bash grammar; None if it needs a newer parser than the installed one."""
    import tree_sitter_bash
    from tree_sitter import Language

    try:
        return Language(tree_sitter_bash.language())
    except ValueError:
        return None


def _commands(root: Node) -> list[ShellCommand]:
    """In text order. A redirection belongs to the last command before it, or to the whole group if
    it follows one."""
    found: list[ShellCommand] = []
    waiting: list[tuple[Node | ShellCommand, tuple[int, ...]]] = [(root, ())]
    while waiting and len(found) <= MOST_COMMANDS:
        node, scope = waiting.pop()
        if isinstance(node, ShellCommand):
            found.append(node)
            continue
        if node.type in _SUBSHELLS:
            scope = (*scope, node.start_byte)
        children: list[Node | ShellCommand] = list(node.children)
        if node.type in ("variable_assignment", "for_statement"):
            found += _assigned(node, scope)
        if node.type in ("command", "redirected_statement"):
            command = _command(node, scope)
            if node.type == "redirected_statement":
                # Its command is reported already, together with what follows it.
                children = [
                    part
                    for child in node.children
                    for part in (child.children if child.type == "command" else [child])
                ]
            if command is not None and any(child.type in _LISTS for child in node.children):
                children.append(command)  # `cd x && run > f`: behind the cd
            elif command is not None:
                found.append(command)
        waiting += [(child, scope) for child in reversed(children)]
    return found


def _assigned(node: Node, scope: tuple[int, ...]) -> Iterator[ShellCommand]:
    """`a=x` and `for a in x y`, reported as the tokenizer does."""
    if node.type == "variable_assignment":
        if node.parent is None or node.parent.type not in ("command", "declaration_command"):
            yield ShellCommand((_word(node),), scope=scope)
        elif node.parent.type == "declaration_command":
            yield ShellCommand(("export", _word(node)), scope=scope)
        return
    parts = [part for part in node.children if part.type not in (";", "\n", "do_group")]
    yield ShellCommand(tuple(_word(part) for part in parts), scope=scope)


def _command(node: Node, scope: tuple[int, ...]) -> ShellCommand | None:
    words: list[str] = []
    redirects: list[Redirect] = []
    fed: list[str] = []
    for child in node.children:
        if child.type in _REDIRECTS:
            _redirect(child, redirects, fed)
        elif child.type == "command":
            inner = _command(child, scope)
            if inner is not None:
                words += inner.words
                redirects += inner.redirects
                fed += [inner.fed] if inner.fed else []
        elif node.type == "command":
            words.append(_word(child))
    if not words and not redirects:
        return None
    return ShellCommand(tuple(words), tuple(redirects), "\n".join(fed), scope)


def _redirect(node: Node, redirects: list[Redirect], fed: list[str]) -> None:
    waiting = [node]
    while waiting:
        part = waiting.pop()
        children = part.children
        operators = [c.type for c in children if c.type in _WRITES]
        if part.type == "file_redirect" and operators:
            target = _word(children[-1])
            if not (operators[0] == ">&" and (target.isdigit() or target == "-")):
                redirects.append(Redirect(target, operators[0].endswith(">>")))
        elif part.type == "herestring_redirect":
            fed.append(_word(children[-1]))
        elif part.type == "heredoc_body":
            fed.append(_text(part))
        elif part.type == "heredoc_redirect":
            waiting += reversed(children)


def _word(node: Node) -> str:
    """A word without its quotes; substitutions stay unknown."""
    pieces: list[str] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part.type in ("command_substitution", "process_substitution"):
            pieces.append(SUBSTITUTION)
        elif part.type == "raw_string":
            pieces.append(_text(part)[1:-1])
        elif part.type == "ansi_c_string":
            pieces.append(_ESCAPE.sub(r"\1", _text(part)[2:-1]))
        elif part.type == "string":
            waiting += reversed([child for child in part.children if child.type != '"'])
        elif part.type in _JOINED:
            waiting += reversed(part.children)
        else:
            pieces.append(_ESCAPE.sub(r"\1", _text(part)))
    return "".join(pieces)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
