"""Messages, documents, docstrings and comments use standard words: none of the phrases below."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.project.repository import ROOT, documents, modules, relative, syntax

# Each phrase with the word that people expect.
HABITS = {
    r"tak(?:e|es|en|ing) (?:\w+ ){0,2}back\b": "restore, undo, roll back",
    r"made anew|make \w+ anew|\banew\b": "recreate, again",
    r"\blet(?:s|ting)? go\b": "expire, delete",
    r"\bwhoever\b": "the user, the program",
    r"\b(?:any|every|no|some)body\b": "another user, another process; or the passive",
    r"\btold\b": "reported, notified",
    r"\b(?:lies|lie|lay) (?:in|outside|inside|at|on|behind|before|beside|there|elsewhere)\b": "is",
    r"\bstands?\b|\bstood\b": "is",
    r"\balso when\b": "even if",
    r"\ball the same\b": "anyway",
    r"\bby itself\b": "automatically",
    r"\b(?:of|not) ours\b": "Holdfast's",
    r"\bput right\b": "repair, fix",
    r"\btaken in\b(?! turn|$)": "import",
    r"\bany more\b": "no longer",
    r"\bthe way out\b": "a hint, the fix",
    r"\bby way of\b": "through",
    r"\bof late\b": "recently",
    r"\bbr(?:ings?|ought) about\b": "cause, restore",
    r"\bhears? of\b": "is notified of",
}
_HABIT = re.compile("|".join(f"({pattern})" for pattern in HABITS), re.IGNORECASE)

# Its rows are the names of tests.
_RESULTS = ROOT / "docs" / "reliability.md"


def _literals(path: Path) -> Iterator[tuple[int, str]]:
    """The string literals of a module, without docstrings."""
    tree = syntax(path)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings and " " in text:
                yield node.lineno, text


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a module, each on one line and without code in it."""
    text = path.read_text("utf-8")
    for node in ast.walk(syntax(path)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(words))):
                yield node.lineno, _without_code(words)
    comments: list[tuple[int, int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            number, words = token.start[0], token.string.lstrip("# ")
            if comments and comments[-1][1] == number - 1:  # a phrase may run over two lines
                first, _, before = comments.pop()
                comments.append((first, number, f"{before} {words}"))
            else:
                comments.append((number, number, words))
    yield from ((first, _without_code(words)) for first, _, words in comments)


def _without_code(words: str) -> str:
    return re.sub(r"`[^`]*`", "`", " ".join(words.split()))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a document, without code in them."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        yield number, re.sub(r"`[^`]*`", "`", line)


def _found(path: Path, texts: Iterator[tuple[int, str]]) -> Iterator[str]:
    for number, text in texts:
        for match in _HABIT.finditer(text):
            word = list(HABITS.values())[(match.lastindex or 1) - 1]
            yield f"{relative(path)}:{number}: {match[0]!r} (better: {word})"


def test_messages_and_documents_use_standard_words() -> None:
    pages = [path for path in documents() if path != _RESULTS]
    found = [
        *(line for path in modules() for line in _found(path, _literals(path))),
        *(line for path in pages for line in _found(path, _lines(path))),
    ]
    assert found == [], "\n".join(found)


def test_docstrings_and_comments_use_standard_words() -> None:
    found = [line for path in modules() for line in _found(path, _prose(path))]
    assert found == [], "\n".join(found)
