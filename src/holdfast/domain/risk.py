"""How much a shell command may destroy: a grade, the reasons, and the paths it names.

    take wrappers off (sudo, env, xargs …) → look the program up in the rules → follow called shells

Every command that was found is graded; the worst counts. Guarantees: an answer for any script, pure
and bounded. Not guaranteed: that a command of grade `none` is harmless. The grade says how a
checkpoint is called, never whether it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from holdfast.domain.shell_commands import SUBSTITUTION, ShellCommand, ShellScript

if TYPE_CHECKING:
    from holdfast.domain.risk_callers import Called

_MOST_REASONS = 5
_MOST_PATHS = 50
_DEEPEST = 3
_MOST_WORDS = 60_000
_CHARACTERS_A_WORD = 4
_SCRATCH = ("/dev/", "/proc/", "/tmp/", "/var/tmp/")


class RiskGrade(IntEnum):
    NONE = 0
    NOTABLE = 1
    RISKY = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a command may do."""

    grade: RiskGrade
    reason: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a script may do. `outside` are the named paths that lie outside the workspace, as they
    were written, and `places` where each of them leads."""

    grade: RiskGrade
    reasons: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    @property
    def reason(self) -> str | None:
        return self.reasons[0] if self.reasons else None


def assess(
    script: ShellScript,
    *,
    workspace: str,
    directory: str | None = None,
    parse: Callable[[str], ShellScript],
) -> Assessment:
    """Grade a script that runs in `directory` of the workspace; `parse` reads what it hands to
    further shells."""
    from holdfast.domain.risk_rules import sql_findings

    budget = _Budget()
    walk = _Walk(workspace.rstrip("/") or "/", directory or workspace, parse, budget)
    walk.through(script, 0)
    findings = [*walk.findings, *sql_findings(walk.told)]
    if not script.whole or budget.is_spent:
        findings.append(Finding(RiskGrade.RISKY, "too long to be read whole"))
    grade = max((f.grade for f in findings), default=RiskGrade.NONE)
    ordered = sorted(findings, key=lambda f: -f.grade)
    reasons = tuple(dict.fromkeys(f.reason for f in ordered))[:_MOST_REASONS]
    outside = walk.outside
    return Assessment(grade, reasons, tuple(walk.paths), tuple(outside), tuple(outside.values()))


class _Budget:
    """How many words are looked at in all: commands that call others may call many, and long."""

    def __init__(self) -> None:
        self._left = _MOST_WORDS

    def spend(self, words: int) -> bool:
        self._left -= words + 1
        return self._left >= 0

    @property
    def is_spent(self) -> bool:
        return self._left < 0


class _Walk:
    """The commands one after the other, with the directory that `cd` leads to."""

    def __init__(
        self,
        workspace: str,
        directory: str,
        parse: Callable[[str], ShellScript],
        budget: _Budget,
    ) -> None:
        self._budget = budget
        self._workspace = workspace
        self._directory = directory
        self._parse = parse
        self.findings: list[Finding] = []
        self.told: list[ShellCommand] = []
        self.paths: dict[str, None] = {}
        self.outside: dict[str, str] = {}

    def through(self, script: ShellScript, depth: int) -> None:
        from holdfast.domain.risk_rules import script_findings

        self.findings += script_findings(script)
        for command in script.commands:
            self._command(command, depth)

    def _command(self, command: ShellCommand, depth: int) -> None:
        from holdfast.domain.risk_callers import called, reads_unseen, unwrap
        from holdfast.domain.risk_of_code import fed_code
        from holdfast.domain.risk_rules import findings_of, operands

        if not self._budget.spend(len(command.words)):
            return
        words, many = unwrap(command.words)
        self.told.append(ShellCommand(words, command.redirects, command.fed))
        for redirect in command.redirects:
            self.findings += _redirect_findings(redirect.target, redirect.appends)
            self._name(redirect.target)
        if not words:
            return
        if words[0] == "cd":
            target = words[-1] if len(words) > 1 else "~"
            self._directory = join(self._directory, target)
        self.findings += findings_of(words, many=many)
        self.findings += fed_code(words, command.fed)
        if reads_unseen(words, command.fed):
            self.findings.append(Finding(RiskGrade.RISKY, f"{words[0]} runs what it is handed"))
        for path in operands(words):
            self._name(path)
        if depth < _DEEPEST:
            for inner in called(words, command.fed):
                self._follow(inner, depth + 1)

    def _follow(self, inner: Called, depth: int) -> None:
        """What a command runs. On another machine it names no path of this one."""
        if not self._budget.spend(len(inner.text) // _CHARACTERS_A_WORD):
            return
        walk = _Walk("/", "/", self._parse, self._budget) if inner.place else self
        script = self._parse(inner.text) if inner.text else ShellScript(())
        if not script.whole:
            self.findings.append(Finding(RiskGrade.RISKY, "too long to be read whole"))
        walk.through(script, depth)
        if inner.words:
            walk._command(ShellCommand(inner.words), depth)
        if walk is not self:
            found = (f for f in walk.findings if f.grade is RiskGrade.RISKY)
            self.findings += [Finding(f.grade, f"{inner.place}: {f.reason}") for f in found]
            self.told += walk.told

    def _name(self, path: str) -> None:
        if not path or path.startswith("/dev/") or path == "-" or SUBSTITUTION in path:
            return
        place = join(self._directory, path)
        inside = place == self._workspace or place.startswith(self._workspace.rstrip("/") + "/")
        if len(self.paths) < _MOST_PATHS:
            self.paths.setdefault(path)
        if not inside and len(self.outside) < _MOST_PATHS:
            self.outside.setdefault(path, place)


def _redirect_findings(target: str, appends: bool) -> Iterator[Finding]:
    if target.startswith("/dev/"):
        if target.startswith(("/dev/sd", "/dev/nvme", "/dev/disk", "/dev/mapper")):
            yield Finding(RiskGrade.RISKY, f"writes to the device {target}")
    elif appends:
        yield Finding(RiskGrade.NOTABLE, f"appends to {target}")
    elif target.startswith(_SCRATCH):
        yield Finding(RiskGrade.NOTABLE, f"overwrites {target}")
    else:
        yield Finding(RiskGrade.RISKY, f"overwrites {target}")


def join(directory: str, path: str) -> str:
    """Where a path leads, by its letters alone. What only the shell knows (`~`, `$X`) counts as
    somewhere else, unless it says that it is here."""
    if path.startswith(("$PWD", "${PWD}")):
        path = path.replace("${PWD}", ".", 1).replace("$PWD", ".", 1)
    if path.startswith(("~", "$")):
        return path
    if directory.startswith(("~", "$")) and not path.startswith("/"):
        return f"{directory}/{path}"
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{directory}/{path}").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)
