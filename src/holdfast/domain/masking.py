"""Secrets in commands and messages, taken out before the text becomes part of a checkpoint's story.

Known shapes are masked: assignments and options whose names say that they are secret, credentials
in addresses and headers, and tokens that their makers gave a recognisable beginning. Every pattern
is bounded, so that no text takes long.
Not guaranteed: a secret that looks like any other word stays.
"""

from __future__ import annotations

import re

MASK = "***"
_MOST_READ = 8_000
_SECRET_NAME = re.compile(
    r"passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|credential|auth[_-]?key",
    re.IGNORECASE,
)
_VALUE = r"(?:\"[^\"]*+\"?|'[^']*+'?|[^\s\"'&;|,}]++)"
_ASSIGNED = re.compile(rf"(?<![\w.-])([\w.-]++)([\"']?\s{{0,3}}[=:]\s{{0,3}}){_VALUE}")
_OPTION = re.compile(rf"(?<!\S)(--?[\w.-]++)(\s{{1,3}})(?!-){_VALUE}")
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [^-]*-----|\Z)", re.S),
        MASK,
    ),
    (re.compile(r"(?i)\b(bearer|basic|token)(\s{1,3})[\w.~+/=-]{8,}+"), rf"\1\2{MASK}"),
    (re.compile(r"(?i)\b(authorization\s?:\s?)(?:\w{1,20}\s)?[\w.~+/=-]{6,}+"), rf"\1{MASK}"),
    (re.compile(r"(://[^\s/:@]{0,200}):[^\s/@]{1,500}@"), rf"\1:{MASK}@"),
    (re.compile(r"(\b(?:mysql|mariadb)\w{0,20}\b[^;|&]{0,200}?\s-p)[^\s-]\S*+"), rf"\1{MASK}"),
    (re.compile(r"(\bcurl\b[^;|&]{0,200}?\s(?:-u|--user)[ =]?[^\s:]{0,100}:)\S++"), rf"\1{MASK}"),
    (
        re.compile(
            r"\b(?:sk-[\w-]{16,}+|gh[pousr]_\w{16,}+|github_pat_\w{16,}+|glpat-[\w-]{16,}+"
            r"|xox[abprs]-[\w-]{8,}+|A(?:KIA|SIA)[0-9A-Z]{16}|AIza[\w-]{30,}+|npm_\w{20,}+"
            r"|hf_\w{20,}+|pypi-[\w-]{20,}+|eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+"
            r"|[rs]k_(?:live|test)_\w{10,}+)"
        ),
        MASK,
    ),
)


def masked(text: str) -> str:
    """The beginning of the text, without the secrets that can be told from other words."""
    text = text[:_MOST_READ]
    for shape, replacement in _SHAPES:
        text = shape.sub(replacement, text)
    return _OPTION.sub(_hide, _ASSIGNED.sub(_hide, text))


def names_secret(name: str) -> bool:
    """Whether the name of a value says that it is a secret."""
    return _SECRET_NAME.search(name) is not None


def _hide(match: re.Match[str]) -> str:
    name, between = match[1], match[2]
    return f"{name}{between}{MASK}" if names_secret(name) else match[0]
