"""What code in another language may destroy, when it stands on the command line or in what is read:
searched for the words by which files are deleted or written, not understood."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.domain.risk import Finding, RiskGrade
from holdfast.domain.working_directory import program

_LANGUAGE = re.compile(
    r"(?:python|pypy)[\d.]*|node|nodejs|deno|bun|php|perl|ruby|awk|gawk|mawk|pwsh|powershell"
)
_DELETING_CODE = re.compile(
    r"rmtree|os\.(?:remove|rmdir)|unlink|rmdir|rmSync|rimraf|fs\.rm\b|FileUtils\.rm|File\.delete"
    r"|deleteSync|Remove-Item|\brm\s+-\w*[rfR]|removedirs|\.remove\("
)
_CODE_OPTION = re.compile(r"-\w*[cerp]|eval\Z|-Command\Z|--(?:eval|print)\Z")
_WRITING_CODE = re.compile(r"open\([^)]*['\"]w|write_text|write_bytes|writeFile")


def is_code(name: str) -> bool:
    """Whether this is an interpreter."""
    return _LANGUAGE.fullmatch(name) is not None


def inline_code(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    """What an interpreter is given on its command line."""
    text = " ".join(arguments)[:20_000]
    if any(_CODE_OPTION.match(word) for word in arguments) or "awk" in name:
        yield from _code(name, text)
    elif any(word in ("flush", "reset_db") for word in arguments):
        yield Finding(RiskGrade.RISKY, "empties the database")


def fed_code(words: Sequence[str], fed: str) -> Iterator[Finding]:
    """What an interpreter reads from a here-document."""
    name = program(words[0])
    if fed and is_code(name):
        yield from _code(name, fed[:100_000])


def _code(name: str, text: str) -> Iterator[Finding]:
    if _DELETING_CODE.search(text):
        yield Finding(RiskGrade.RISKY, f"{name} code that deletes files")
    elif _WRITING_CODE.search(text):
        yield Finding(RiskGrade.NOTABLE, f"{name} code that writes files")
