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

from holdfast.domain.shell_commands import SUBSTITUTION, ShellCommand, ShellScript

_MOST_REASONS = 5
_MOST_PATHS = 50
_DEEPEST = 3
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

    walk = _Walk(workspace.rstrip("/") or "/", directory or workspace, parse)
    walk.through(script, 0)
    findings = [*walk.findings, *sql_findings(walk.told)]
    if not script.whole:
        findings.append(Finding(RiskGrade.RISKY, "too long to be read whole"))
    grade = max((f.grade for f in findings), default=RiskGrade.NONE)
    ordered = sorted(findings, key=lambda f: -f.grade)
    reasons = tuple(dict.fromkeys(f.reason for f in ordered))[:_MOST_REASONS]
    outside = walk.outside
    return Assessment(grade, reasons, tuple(walk.paths), tuple(outside), tuple(outside.values()))


class _Walk:
    """The commands one after the other, with the directory that `cd` leads to."""

    def __init__(self, workspace: str, directory: str, parse: Callable[[str], ShellScript]) -> None:
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
        from holdfast.domain.risk_rules import called_script, findings_of, operands, unwrap

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
        for path in operands(words):
            self._name(path)
        inner = called_script(words)
        if inner is not None and depth < _DEEPEST:
            script = self._parse(inner)
            if not script.whole:
                self.findings.append(Finding(RiskGrade.RISKY, "too long to be read whole"))
            self.through(script, depth + 1)

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
