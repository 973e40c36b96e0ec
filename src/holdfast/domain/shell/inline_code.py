"""Risks of inline code in another language, on the command line or in its input. The code is not
parsed, only searched for calls that delete or write files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.domain.shell.expansion import program
from holdfast.domain.shell.findings import Finding, notable, risky

_LANGUAGE = re.compile(
    r"(?:python|pypy)[\d.]*|node|nodejs|deno|bun|php|perl|ruby|awk|gawk|mawk|pwsh|powershell"
)
_DELETING_CODE = re.compile(
    r"rmtree|os\.(?:remove|rmdir)|unlink|rmdir|rmSync|rimraf|fs\.rm\b|FileUtils\.rm|File\.delete"
    r"|deleteSync|Remove-Item|\brm\s+-\w*[rfR]|removedirs|\.remove\("
)
_CODE_OPTION = re.compile(r"-\w*[cerp]|eval\Z|-Command\Z|--(?:eval|print)\Z")
_WRITING_CODE = re.compile(r"open\([^)]*['\"]w|write_text|write_bytes|writeFile")
_LITERAL = re.compile(r"""(["'`])((?:(?!\1)[^\\\n]){1,4096})\1""")
_WRITTEN = re.compile(
    r"""(?:open\(\s*(["'`])([^"'`\n]+)\1\s*,\s*(?:mode\s*=\s*)?["'][rb]*[wax+]"""
    r"""|Path\(\s*(["'])([^"'\n]+)\3\s*\)\.(?:write_|open\(\s*["'][wax]|touch|mkdir)"""
    r"""|(?:writeFile|appendFile|createWriteStream|mkdir|copyFile\([^,]+,|rename\([^,]+,)"""
    r"""(?:Sync)?\(?\s*(["'`])([^"'`\n]+)\5)"""
)
_MOST_LITERALS = 200
_MOST_CODE = 100_000


def literal_paths(text: str) -> Iterator[str]:
    """Quoted texts that may be file names."""
    for number, found in enumerate(_LITERAL.finditer(text[:_MOST_CODE])):
        if number == _MOST_LITERALS:
            return
        yield found.group(2)


def written_paths(text: str) -> Iterator[str]:
    """Literal paths that code opens for writing, whether or not they exist."""
    for number, found in enumerate(_WRITTEN.finditer(text[:_MOST_CODE])):
        if number == _MOST_LITERALS:
            return
        yield found.group(2) or found.group(4) or found.group(6)


def deletes_files(text: str) -> bool:
    """Whether code calls something that deletes files."""
    return _DELETING_CODE.search(text[:_MOST_CODE]) is not None


def is_code(name: str) -> bool:
    """Whether this is an interpreter."""
    return _LANGUAGE.fullmatch(name) is not None


def inline_code(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    """The code on an interpreter's command line."""
    text = " ".join(arguments)[:20_000]
    if any(_CODE_OPTION.match(word) for word in arguments) or "awk" in name:
        yield from _code(name, text)
    elif any(word in ("flush", "reset_db") for word in arguments):
        yield risky("empties the database")


def fed_code(words: Sequence[str], fed: str) -> Iterator[Finding]:
    """The code that an interpreter reads from a here-document."""
    name = program(words[0])
    if fed and is_code(name):
        yield from _code(name, fed[:100_000])


def _code(name: str, text: str) -> Iterator[Finding]:
    if _DELETING_CODE.search(text):
        yield risky(f"{name} code that deletes files")
    elif _WRITING_CODE.search(text):
        yield notable(f"{name} code that writes files")
