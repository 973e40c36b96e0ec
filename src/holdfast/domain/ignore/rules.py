"""Ignore rules: the lines of ignore files, in layers, and which of them decides about a path.

Algorithm: each file becomes a layer of rules. Layers are stacked by precedence, then by depth. Of
all rules that match a path, the last one decides. The stack keeps one table for files and one for
directories.

Guarantees: `decide` answers as git does for a path whose parent directories are not ignored, with
the rule that `git check-ignore --verbose` would name. Values are immutable. Equal fingerprints mean
equal decisions.
Not guaranteed: anything about a path below an ignored directory, which git does not enter either,
or outside the base of every layer. The caller adds a directory's layers on entry and drops them on
exit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum

from holdfast.domain.ignore.glob import Tokens, read_name_pattern, read_path_pattern
from holdfast.domain.ignore.names import NONE, NumberedTokens
from holdfast.domain.ignore.table import EMPTY_TABLE, PatternTable, make_table
from holdfast.domain.paths import join
from holdfast.domain.trees.objects import digest_of
from holdfast.values.classes import dataclass

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Part of each fingerprint: increase it when the same rules decide differently.
_MEANING = b"holdfast ignore rules 1"


class Precedence(IntEnum):
    """Which kind of ignore file wins, regardless of depth. Higher wins."""

    DEFAULT = 0
    GIT_EXCLUDE = 1
    GITIGNORE = 2
    HOLDFASTIGNORE = 3
    SETTING = 4


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line of an ignore file, as a reason to display."""

    pattern: bytes  # as written, without line end and trailing blanks
    source: str
    base: bytes
    line: int  # from 1; 0 when there is no file to look into
    negated: bool

    def describe(self) -> str:
        """For people: `sub/.gitignore:3: *.log`. Control characters are escaped."""
        directory = _printable(self.base) + "/" if self.base else ""
        line = f":{self.line}" if self.line else ""
        return f"{directory}{self.source}{line}: {_printable(self.pattern)}"


def precedence_of(description: str) -> Precedence | None:
    """The kind of a rule, from its `describe` text in a report. None for a git rule, or for a path
    that is ignored with its directory."""
    if description.startswith("default: "):
        return Precedence.DEFAULT
    if description.startswith("setting 'ignore'"):
        return Precedence.SETTING
    file = description.partition(": ")[0].rpartition("/")[2].rpartition(":")[0]
    return Precedence.HOLDFASTIGNORE if file == ".holdfastignore" else None


@dataclass(frozen=True, slots=True)
class RuleLayer:
    """The rules of one ignore file, in order. Made by `parse_rules`."""

    rules: tuple[IgnoreRule, ...]
    precedence: Precedence
    fingerprint: bytes
    files: PatternTable
    directories: PatternTable


@dataclass(frozen=True, slots=True)
class ParsedPattern:
    """One parsed line: which names or paths it matches, and whether it re-includes them."""

    tokens: Tokens
    negated: bool
    directories_only: bool
    names_only: bool


def parse_rules(
    text: bytes,
    base: bytes,
    source: str,
    precedence: Precedence = Precedence.GITIGNORE,
) -> RuleLayer:
    """The rules of one ignore file in directory `base`, without lines that cannot match."""
    rules: list[IgnoreRule] = []
    patterns: list[ParsedPattern] = []
    for number, line in pattern_lines(text):
        parsed = parse_pattern(line)
        if parsed is not None:
            shown_line = 0 if precedence is Precedence.DEFAULT else number
            rules.append(IgnoreRule(line, source, base, shown_line, parsed.negated))
            patterns.append(parsed)
    return RuleLayer(
        rules=tuple(rules),
        precedence=precedence,
        fingerprint=_digest((b"%d" % precedence, base, *(rule.pattern for rule in rules))),
        files=_table_of(patterns, base, is_dir=False),
        directories=_table_of(patterns, base, is_dir=True),
    )


def _table_of(patterns: Sequence[ParsedPattern], base: bytes, is_dir: bool) -> PatternTable:
    names: list[NumberedTokens] = []
    paths: list[NumberedTokens] = []
    for number, pattern in enumerate(patterns):
        if is_dir or not pattern.directories_only:
            (names if pattern.names_only else paths).append(NumberedTokens(number, pattern.tokens))
    return make_table(names, paths, base)


def parse_pattern(line: bytes) -> ParsedPattern | None:
    """Parse a line that is not a comment; None if it cannot match."""
    negated = line.startswith(b"!")
    pattern = line[negated:]
    directories_only = pattern.endswith(b"/")
    if directories_only:
        pattern = pattern[:-1]
    names_only = b"/" not in pattern
    if names_only:
        tokens = read_name_pattern(pattern)
    else:
        tokens = read_path_pattern(pattern.removeprefix(b"/"))
    return None if tokens is None else ParsedPattern(tokens, negated, directories_only, names_only)


class DirectoryRules:
    """The rules for the names in one directory, computed once by `RuleStack.in_directory`."""

    __slots__ = ("_directories", "_files", "_has_unsplit", "_rules", "_stack", "directory")

    def __init__(self, stack: RuleStack, directory: bytes) -> None:
        self.directory = directory
        self._stack = stack
        self._rules = stack.rules
        self._has_unsplit = bool(stack.directories.unsplit)
        self._files = stack.files.names_in(directory)
        self._directories = stack.directories.names_in(directory)

    def decide(self, name: bytes, is_dir: bool) -> IgnoreRule | None:
        """As `RuleStack.decide`, for a name in this directory."""
        number = (self._directories if is_dir else self._files).highest(name)
        if self._has_unsplit:
            table = self._stack.directories if is_dir else self._stack.files
            path = join(self.directory, name)
            for alternation in table.unsplit:
                number = max(number, alternation.highest(path))
        return None if number == NONE else self._rules[number]


class RuleStack:
    """Layers of rules, from weak to strong."""

    __slots__ = ("_latest", "_layers", "directories", "files", "fingerprint", "rules")

    fingerprint: bytes
    """A digest of everything that influences decisions. Labels, line numbers and comments do
    not."""

    def __init__(
        self,
        layers: tuple[RuleLayer, ...],
        rules: tuple[IgnoreRule, ...],
        files: PatternTable,
        directories: PatternTable,
    ) -> None:
        self._layers = layers
        self.rules = rules
        self.files = files
        self.directories = directories
        self.fingerprint = _digest(layer.fingerprint for layer in layers)
        # Paths come directory by directory. Replaced whole, so that threads may share the stack.
        self._latest: DirectoryRules | None = None

    @classmethod
    def of(cls, *layers: RuleLayer) -> RuleStack:
        """A stack of these layers, given from the shallowest directory to the deepest."""
        stack = cls((), (), EMPTY_TABLE, EMPTY_TABLE)
        for layer in sorted(layers, key=lambda layer: layer.precedence):
            stack = stack.with_layer(layer)
        return stack

    def with_layer(self, layer: RuleLayer) -> RuleStack:
        """A stack with one more layer, above others of its precedence and below stronger ones."""
        if not layer.rules:
            return self
        if self._layers and layer.precedence < self._layers[-1].precedence:
            return RuleStack.of(*self._layers, layer)
        count = len(self.rules)
        return RuleStack(
            (*self._layers, layer),
            self.rules + layer.rules,
            self.files.below(layer.files, count),
            self.directories.below(layer.directories, count),
        )

    def in_directory(self, directory: bytes) -> DirectoryRules:
        """The rules for the names in a directory. Faster for a caller that lists it."""
        return DirectoryRules(self, directory)

    def decide(self, path: bytes, is_dir: bool) -> IgnoreRule | None:
        """The rule that decides about a path, or None. It ignores the path unless `negated`."""
        directory, _, name = path.rpartition(b"/")
        latest = self._latest
        if latest is None or latest.directory != directory:
            latest = self._latest = DirectoryRules(self, directory)
        return latest.decide(name, is_dir)


def pattern_lines(text: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that hold a pattern, numbered from 1, without line end and trailing blanks."""
    for number, line in enumerate(text.removeprefix(_BYTE_ORDER_MARK).split(b"\n"), 1):
        if line.startswith(b"#"):
            continue
        # git keeps lines as C strings: everything after a zero byte is lost.
        pattern = _without_trailing_blanks(line.removesuffix(b"\r").partition(b"\0")[0])
        if pattern:
            yield number, pattern


def _without_trailing_blanks(line: bytes) -> bytes:
    """Only spaces are blanks here, and a space after a backslash is kept."""
    stripped = line.rstrip(b" ")
    if len(stripped) == len(line):
        return line
    backslashes = len(stripped) - len(stripped.rstrip(b"\\"))
    return line[: len(stripped) + backslashes % 2]


def _printable(text: bytes) -> str:
    shown = text.decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in shown)


def _digest(parts: Iterable[bytes]) -> bytes:
    # Each part is preceded by its length, so different lists never encode the same.
    return digest_of(b"".join(b"%d:%b" % (len(part), part) for part in (_MEANING, *parts)))
