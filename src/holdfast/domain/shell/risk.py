"""How much a shell command may destroy: a grade, the reasons, and the paths it names.

    remove wrappers (sudo, env, xargs …) → look the program up in the rules → follow called shells

Every command is graded; the worst grade counts. Guarantees: an answer for any script, pure and
bounded. Not guaranteed: that a command of grade `none` is harmless. The grade decides how a
checkpoint is labelled, never whether it is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.domain.external_paths import MEMORY_DISK, is_device
from holdfast.domain.shell.changed_paths import (
    argument_paths,
    changed_paths,
    changed_trees,
    copied_paths,
    named_in_code,
    only_reads,
    searched,
)
from holdfast.domain.shell.commands import SUBSTITUTION, ShellCommand, ShellScript
from holdfast.domain.shell.emptied_trees import (
    TOP_OF_REPOSITORY,
    EmptiedTree,
    deletes_its_arguments,
    emptied_trees,
)
from holdfast.domain.shell.expansion import (
    UNKNOWN,
    Variables,
    WorkingDirectory,
    expanded,
    join,
    path_from_workspace,
    program,
)
from holdfast.domain.shell.findings import Finding, RiskGrade, risky
from holdfast.domain.shell.inline_code import fed_code
from holdfast.domain.shell.risk_rules import findings_of, script_findings, sql_findings
from holdfast.domain.shell.wrappers import (
    Called,
    called,
    chosen_directory,
    runs_unseen_input,
    unwrap,
)
from holdfast.values.classes import NamedTuple

_MOST_REASONS = 5
_MOST_PATHS = 50
_MOST_OUTSIDE = 500
_MOST_MENTIONED = 200
_MOST_TEXT = 300
_UNKNOWN = re.compile(r"[*?\[{$`~]")
_DEEPEST = 3
_MOST_WORDS = 60_000
_CHARACTERS_A_WORD = 4
_READS_NAMES = frozenset("xargs parallel read mapfile readarray entr".split())
_SCRATCH = (f"{MEMORY_DISK}/", "/proc/", "/tmp/", "/var/tmp/")


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a script may do.

    - `outside`: the named paths outside the workspace, as written; `places` has the absolute path
      of each.
    - `inside`: the paths in the workspace that it changes; `mentioned`: those it names in another
      way.
    - `handed`: files outside that are arguments of a program which may change them.
    - `emptied`: directories, and patterns, of which it may delete everything.
    - `uncounted`: there are more paths outside than are listed.
    - `gravest`: the command that `reason` is about, if it is one of several.
    """

    grade: RiskGrade
    reasons: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    handed: tuple[str, ...] = ()
    emptied: tuple[EmptiedTree, ...] = ()
    uncounted: bool = False
    gravest: str = ""

    @property
    def reason(self) -> str | None:
        return self.reasons[0] if self.reasons else None


class Disk(NamedTuple):
    """Questions about absolute paths: does it exist, is it a file or a directory, and which paths
    match a pattern. The default assumes that everything exists and knows nothing else."""

    exists: Callable[[str], bool] = lambda place: True
    is_file: Callable[[str], bool] = lambda place: False
    is_directory: Callable[[str], bool] = lambda place: False
    matching: Callable[[str], Sequence[str]] = lambda pattern: ()


ANY_DISK = Disk()


def assess(
    script: ShellScript,
    *,
    workspace: str,
    directory: str | None = None,
    parse: Callable[[str], ShellScript],
    disk: Disk = ANY_DISK,
) -> Assessment:
    """Grade a script that runs in `directory` of the workspace. `parse` parses the text it passes
    to other shells."""
    budget = _Budget()
    walk = _Walk(workspace.rstrip("/") or "/", directory or workspace, parse, budget, disk)
    walk.through(script, 0)
    findings = [*walk.findings, *sql_findings(walk.commands)]
    if not script.whole or budget.is_spent:
        findings.append(risky("too long to analyse"))
    grade = max((f.grade for f in findings), default=RiskGrade.NONE)
    ordered = sorted(findings, key=lambda f: f.gravity, reverse=True)
    reasons = tuple(dict.fromkeys(f.reason for f in ordered))[:_MOST_REASONS]
    outside = walk.outside
    return Assessment(
        grade,
        reasons,
        tuple(walk.paths),
        tuple(outside),
        tuple(outside.values()),
        tuple(walk.inside),
        tuple(walk.mentioned),
        tuple(walk.handed),
        tuple(walk.emptied),
        walk.uncounted,
        ordered[0].command if ordered and len(walk.commands) > 1 else "",
    )


class _Budget:
    """Limits the words analysed in total, because commands can call many others."""

    def __init__(self) -> None:
        self._left = _MOST_WORDS

    def spend(self, words: int) -> bool:
        self._left -= words + 1
        return self._left >= 0

    @property
    def is_spent(self) -> bool:
        return self._left < 0


class _Walk:
    """Analyses commands in order, each in its working directory."""

    def __init__(
        self,
        workspace: str,
        directory: str,
        parse: Callable[[str], ShellScript],
        budget: _Budget,
        disk: Disk,
    ) -> None:
        self._budget = budget
        self._workspace = workspace
        self._place = WorkingDirectory(directory)
        self._parse = parse
        self._disk = disk
        self._variables = Variables()
        self._pipes_names = self._deletes_names = False
        self.findings: list[Finding] = []
        self.commands: list[ShellCommand] = []
        self.paths: dict[str, None] = {}
        self.outside: dict[str, str] = {}
        self._places: set[str] = set()
        self.inside: dict[str, None] = {}
        self.mentioned: dict[str, None] = {}
        self.handed: dict[str, None] = {}
        self.emptied: dict[EmptiedTree, None] = {}
        self.uncounted = False

    def through(self, script: ShellScript, depth: int) -> None:
        self.findings += script_findings(script)
        self._pipes_names = self._pipes_names or _pipes_names(script)
        self._deletes_names = self._deletes_names or _deletes_names(script)
        for command in script.commands:
            self._place.enter(command.scope)
            self._command(command, depth)

    def _command(self, command: ShellCommand, depth: int) -> None:
        if not self._budget.spend(len(command.words)):
            return
        self._variables.follow(command.words)
        words, many = unwrap(command.words)
        self.commands.append(ShellCommand(words, command.redirects, command.fed))
        # All at once, because a command may have very many, and each finding has the whole
        # command's text.
        self._keep(
            (f for r in command.redirects for f in _redirect_findings(r.target, r.appends)), command
        )
        for redirect in command.redirects:
            for target in self._expanded((redirect.target,)):
                self._name(target)
        if not words:
            return
        self._place.follow(self._expanded(words))
        chosen = chosen_directory(self._expanded(command.words))
        shell, self._place = self._place, self._place.at(chosen)
        self._keep(findings_of(words, many=many), command)
        self._keep(fed_code(words, command.fed), command)
        if runs_unseen_input(words, command.fed):
            self._keep([risky(f"{words[0]} runs its input")], command)
        self._name_all(words, command.fed, runs_elsewhere=chosen is not None)
        if depth < _DEEPEST:
            own = program(words[0]) != "eval"
            here = self._place
            for inner in called(words, command.fed):
                self._place = here.apart() if own else here
                self._follow(inner, depth + 1)
        self._place = shell

    def _expanded(self, words: tuple[str, ...]) -> tuple[str, ...]:
        return expanded(words, self._variables, self._matching)

    def _matching(self, pattern: str) -> Sequence[str]:
        """The paths that match a pattern, spelled as the shell would."""
        place = join(self._place.directory, pattern)
        return () if UNKNOWN.search(place) else self._disk.matching(place)

    def _name_all(self, written: tuple[str, ...], fed: str, *, runs_elsewhere: bool) -> None:
        """Record the paths that one command changes or may change. `runs_elsewhere`: an option
        makes it work in another directory."""
        words = self._expanded(written)
        for path in copied_paths(written):
            self._list_path(path)
        for path in changed_paths(words, self._is_directory):
            self._name(path)
        if program(words[0]) == "find" and self._pipes_names:
            for path in searched(words):
                self._name(path)
        for path in changed_trees(words, runs_elsewhere=runs_elsewhere):
            place = join(self._place.directory, path)
            if not self._is_inside(place):
                self._name(place)
        for path, is_written in named_in_code(words, fed):
            self._add_argument(path)
            if is_written:
                self._name(path)
        self._empty(words, written, fed)
        for word in words[1:_MOST_MENTIONED]:
            self._mention(word)
        if self._pipes_names or not only_reads(words):
            for path in (*argument_paths(words), *(fed.split() if self._pipes_names else ())):
                self._add_argument(path)

    def _empty(self, words: tuple[str, ...], written: tuple[str, ...], fed: str) -> None:
        handed_on = self._pipes_names and self._deletes_names
        for tree in emptied_trees(words, written, fed, handed_on=handed_on):
            if len(self.emptied) >= _MOST_OUTSIDE:
                return
            place = join(self._place.directory, tree.place)
            if tree.place == TOP_OF_REPOSITORY:
                here = self._place.directory
                place = self._workspace if self._is_inside(here) else here
            if SUBSTITUTION not in place:
                self.emptied.setdefault(tree._replace(place=place))

    def _is_directory(self, path: str) -> bool:
        return self._disk.is_directory(join(self._place.directory, path))

    def _keep(self, found: Iterable[Finding], command: ShellCommand) -> None:
        """Keep findings, except those that only create a new file."""
        kept = [f for f in found if not f.target or self._is_there(f.target)]
        text = _text_of(command) if kept else ""
        self.findings += [
            replace(finding, reason=self._found_from_here(finding), command=text)
            for finding in kept
        ]

    def _found_from_here(self, finding: Finding) -> str:
        """The reason, with an outside path written relative to the workspace."""
        path = finding.shown or finding.target
        place = join(self._place.directory, path) if path else self._workspace
        if self._is_inside(place) or SUBSTITUTION in place:
            return finding.reason
        name = path_from_workspace(self._workspace, path, place)
        words = re.compile(rf"(?<= ){re.escape(path)}(?= |$)")
        return words.sub(lambda _: name, finding.reason, count=1)

    def _is_there(self, path: str) -> bool:
        place = join(self._place.directory, path)
        if _UNKNOWN.search(place) or SUBSTITUTION in place:
            return True  # the actual file is unknown
        return self._disk.exists(place)

    def _follow(self, inner: Called, depth: int) -> None:
        """Analyse what a command runs. On another machine, it names no paths of this one."""
        if not self._budget.spend(len(inner.text) // _CHARACTERS_A_WORD):
            return
        elsewhere = _Walk("/", "/", self._parse, self._budget, ANY_DISK)
        walk = elsewhere if inner.place else self
        script = self._parse(inner.text) if inner.text else ShellScript(())
        if not script.whole:
            self.findings.append(risky("too long to analyse"))
        walk.through(script, depth)
        if inner.words:
            walk._command(ShellCommand(inner.words), depth)
        if walk is not self:
            found = (f for f in walk.findings if f.grade is RiskGrade.RISKY)
            for f in found:
                reason = f"{inner.place}: {f.reason}"
                self.findings.append(Finding(f.grade, reason, command=f.command))
            self.commands += walk.commands

    def _name(self, path: str) -> None:
        if not path or is_device(path) or path == "-" or SUBSTITUTION in path:
            return
        place = join(self._place.directory, path)
        self._list_path(path)
        if self._is_inside(place):
            if len(self.inside) < _MOST_OUTSIDE:
                self.inside.setdefault(place)
        elif len(self.outside) >= _MOST_OUTSIDE:
            self.uncounted = True
        elif place not in self._places:
            # The same word may mean another place after a cd.
            self._places.add(place)
            self.outside.setdefault(path if path not in self.outside else place, place)

    def _list_path(self, path: str) -> None:
        if len(self.paths) < _MOST_PATHS:
            self.paths.setdefault(path)

    def _add_argument(self, path: str) -> None:
        """Record a file that a program may change because it is an argument."""
        if not path or "\n" in path or SUBSTITUTION in path:
            return
        place = join(self._place.directory, path)
        if self._is_inside(place):
            self._mention(path)
        elif not self._disk.is_file(place):
            return
        elif len(self.handed) < _MOST_OUTSIDE:
            self.handed.setdefault(place)
        else:
            self.uncounted = True

    def _mention(self, word: str) -> None:
        """Record a word that may be a file, including an option's value."""
        path = word.partition("=")[2] if word.startswith("-") else word
        if len(self.mentioned) >= _MOST_MENTIONED or not path or SUBSTITUTION in path:
            return
        place = join(self._place.directory, path)
        if self._is_inside(place) and place != self._workspace:
            self.mentioned.setdefault(place)

    def _is_inside(self, place: str) -> bool:
        return place == self._workspace or place.startswith(self._workspace.rstrip("/") + "/")


def _pipes_names(script: ShellScript) -> bool:
    """Whether one command's output becomes another's arguments."""
    return any(
        program(word) in _READS_NAMES or SUBSTITUTION in word
        for command in script.commands
        for word in command.words[:_MOST_MENTIONED]
    )


def _deletes_names(script: ShellScript) -> bool:
    """Whether one of its commands deletes its arguments."""
    found = (unwrap(command.words)[0] for command in script.commands if command.words)
    return any(words and deletes_its_arguments(words) for words in found)


def _redirect_findings(target: str, appends: bool) -> Iterator[Finding]:
    if is_device(target):
        if target.startswith(("/dev/sd", "/dev/nvme", "/dev/disk", "/dev/mapper")):
            yield risky(f"writes to the device {target}")
    elif appends:
        yield Finding(RiskGrade.NOTABLE, f"appends to {target}", target)
    elif target.startswith(_SCRATCH):
        yield Finding(RiskGrade.NOTABLE, f"overwrites {target}", target)
    else:
        yield Finding(RiskGrade.RISKY, f"overwrites {target}", target)


def _text_of(command: ShellCommand) -> str:
    """A command as a person would type it, for a headline."""
    shown = command.redirects[:_MOST_TEXT]
    redirects = (f"{'>>' if r.appends else '>'} {r.target}" for r in shown)
    return " ".join((*command.words[:_MOST_TEXT], *redirects))[:_MOST_TEXT]
