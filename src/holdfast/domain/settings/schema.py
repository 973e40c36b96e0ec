"""Every setting: key, meaning, default and check. Interfaces and docs are generated from this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from holdfast.domain.errors import InvalidSetting
from holdfast.values.classes import dataclass, field, fields

_LONGEST_SHOWN = 200
_SIZE_UNITS = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4}
_SIZE_UNITS |= {u + e: 1 << 10 * n for n, u in enumerate("kmgt", 1) for e in ("", "ib")}


class SecretRefused(ValueError):
    """A value that may be a secret, so errors do not repeat it."""


def parse_size(value: Any) -> int:
    """Bytes from `100000`, `"100 MB"` or `"5GiB"`."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError("a size is a number of bytes, or text such as '100 MB'")
    if isinstance(value, int):
        size = value
    else:
        text = value.strip().lower().replace("_", "")
        digits = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = text[len(digits) :].strip()
        if unit not in _SIZE_UNITS:
            raise ValueError(f"unknown unit {unit!r}; use B, kB, MB, GB, KiB, MiB or GiB")
        try:
            size = int(float(digits) * _SIZE_UNITS[unit])
        except (ValueError, OverflowError):
            raise ValueError(f"{value!r} is not a size") from None
    if size <= 0:
        raise ValueError("a size must be greater than zero")
    return size


def _require_list(value: Any, kind: str) -> None:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"expects {kind}")


def _patterns(value: Any) -> tuple[str, ...]:
    _require_list(value, 'a list of patterns, e.g. [".env", "*.db"]')
    for pattern in value:
        if not isinstance(pattern, str) or not pattern.strip() or set(pattern) & {"\0", "\n"}:
            raise ValueError(f"{pattern!r} is not a pattern")
        try:
            pattern.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise ValueError(f"{pattern!r} is not a pattern") from None
    return tuple(value)


def _includes(value: Any) -> tuple[str, ...]:
    from holdfast.domain.ignore.includes import IncludePatterns  # late: few settings are patterns

    patterns = _patterns(value)
    IncludePatterns.parse(patterns)
    return patterns


def _number(most: int, kind: str) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
            raise ValueError(f"expects a number of {kind}")
        return float(value)

    return check


_seconds = _number(86400, "seconds from 0 to 86400")
_minutes = _number(10080, "minutes, up to a week")


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1_000_000_000:
        raise ValueError("expects a whole number, 0 for no limit")
    return value


def _time_of_day(value: Any) -> str:
    hours, colon, minutes = value.partition(":") if isinstance(value, str) else ("", "", "")
    if value == "":
        return ""
    if not (colon and len(hours) == len(minutes) == 2 and (hours + minutes).isdecimal()):
        raise ValueError('expects a time of day such as 18:00, or "" for never')
    if int(hours) > 23 or int(minutes) > 59:
        raise ValueError("there is no such time of day")
    return str(value)


class _Choice:
    """Accepts one of these words. `former` maps words of older stores to them."""

    def __init__(self, *allowed: str, former: Mapping[str, str] | None = None) -> None:
        self.allowed, self._former = allowed, former or {}
        self.example = " or ".join(f'"{word}"' for word in allowed)

    def __call__(self, value: Any) -> str:
        word = self._former.get(str(value), value)
        if word not in self.allowed:
            raise ValueError(f"expects one of {', '.join(self.allowed)}")
        return str(word)


_ON_OFF = _Choice("on", "off")


def _component_names(value: Any) -> tuple[str, ...]:
    from holdfast.domain.component_states import valid_component_name  # late: few set this

    _require_list(value, 'a list of names, e.g. ["git"]')
    for name in value:
        if not isinstance(name, str) or not valid_component_name(name):
            raise ValueError(f"{name!r} cannot be the name of a component")
    return tuple(dict.fromkeys(value))


def _file(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value or (value and value[0] not in "/~"):
        raise ValueError("expects the absolute path of a file, in quotes")
    return value


def _command(value: Any) -> tuple[str, ...]:
    _require_list(value, 'a program and its arguments, e.g. ["make", "test"]')
    for word in value:
        if not isinstance(word, str) or "\0" in word:
            raise ValueError(f"{word!r} is not a word of a command")
    if value and not value[0].strip():
        raise ValueError("the first word must be a program")
    return tuple(value)


def _agent_state(value: Any) -> tuple[str, ...]:
    from holdfast.domain.agent_patterns import parse_agent_state  # late: few settings are patterns

    return parse_agent_state(value)


def _url_sources(value: Any) -> tuple[str, ...]:
    """Names of variables or files; a URL itself is refused without being repeated."""
    _require_list(value, 'a list of variables or files, e.g. ["DATABASE_URL"]')
    for source in value:
        name = isinstance(source, str) and source.isascii() and source.isidentifier()
        path = isinstance(source, str) and source.startswith(("/", "~/")) and "\0" not in source
        if not (name or path):
            raise SecretRefused(
                "each entry is the name of an environment variable, or a file, that contains "
                "the URL; the URL itself is never stored"
            )
    return tuple(dict.fromkeys(value))


def _retention(value: Any) -> Any:
    from holdfast.domain.retention import parse_rules  # late: few settings are rules

    return parse_rules(value)


def _template(value: Any) -> str:
    from holdfast.domain.git.commits import require_template  # late: few set this

    if not isinstance(value, str):
        raise ValueError("expects text")
    return require_template(value)


def _branch_names(rule: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        from holdfast.domain.git import branches

        return getattr(branches, rule)(value)

    return check


class FromProject(Enum):
    """Whether a project's own file, which another user may have written, can change a setting."""

    ALWAYS = "can only add protection"
    TRUSTED = "can weaken protection: applied after the user trusts the file"
    NEVER = "controls which programs run, or which files outside the project are read or written"


class Cautious:
    """The value of a setting that cannot be read, if its default could reveal, change or delete
    more. `make` gets what was found, and what is wrong with it. A misspelt name can only mean this
    setting if `can_be` accepts the value."""

    def __init__(
        self,
        make: Callable[[Any, str], Any],
        can_be: Callable[[Any], bool] = lambda _: True,
    ) -> None:
        self.make, self.can_be = make, can_be


_NO_LIMIT_BYTES = 1 << 60
_NOTHING_REMOVED = Cautious(lambda *_: _NO_LIMIT_BYTES)
"""Nothing is removed to make room."""


def _readable_patterns(value: Any, problem: str) -> tuple[str, ...]:
    """The valid patterns. There must be one, because an invalid one may name a secret file."""
    if value == "":
        return ()
    kept: list[str] = []
    for pattern in value if isinstance(value, (list, tuple)) else [value]:
        try:
            kept += _patterns([pattern])
        except ValueError:
            continue
    if not kept:
        raise InvalidSetting(
            f"{problem}. Nothing is saved, because it is not clear which files to leave out"
        )
    return tuple(kept)


def _nothing_expires(value: Any, problem: str) -> Any:
    from holdfast.domain.checkpoints import Kind
    from holdfast.domain.retention import ALWAYS_KEPT, RetentionRule

    return tuple(sorted((kind, RetentionRule()) for kind in Kind if kind not in ALWAYS_KEPT))


def _setting(
    default: Any,
    check: Callable[[Any], Any],
    help_text: str,
    *,
    example: str = "",
    from_project: FromProject = FromProject.TRUSTED,
    user_only: bool = False,
    cautious: Cautious | None = None,
    decides_capture: bool = False,
) -> Any:
    """`example` shows values as a user would type them; a choice generates its own. `user_only`:
    read only from the user's file. `decides_capture`: it influences which files are captured, so a
    second process that reads the workspace needs it."""
    metadata = {
        "check": check,
        "help": help_text,
        "example": example or getattr(check, "example", ""),
        "from_project": from_project,
        "user_only": user_only,
        "cautious": cautious,
        "decides_capture": decides_capture,
    }
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Settings:
    """The effective settings of a workspace."""

    include: tuple[str, ...] = _setting(
        (),
        _includes,
        "patterns to capture even if an ignore rule excludes them",
        from_project=FromProject.ALWAYS,
        example='[".env", "*.db"]',
        decides_capture=True,
    )
    ignore: tuple[str, ...] = _setting(
        (),
        _patterns,
        "patterns to leave out, in addition to the ignore files",
        example='["*.log"]',
        cautious=Cautious(
            _readable_patterns, lambda value: value is None or isinstance(value, (str, list))
        ),
        decides_capture=True,
    )
    capture_named_ignored: str = _setting(
        "on",
        _ON_OFF,
        "capture an ignored file once an agent's tool has named it",
        cautious=Cautious(lambda *_: "off"),
    )
    max_file_size: int = _setting(
        100_000_000,
        parse_size,
        "larger files are left out and reported",
        example='"250 MB"',
        decides_capture=True,
    )
    budget: int = _setting(
        5_000_000_000,
        parse_size,
        "the maximum size of this workspace's store",
        example='"10 GB"',
        cautious=_NOTHING_REMOVED,
    )
    total_budget: int = _setting(
        20_000_000_000,
        parse_size,
        "the maximum size of all your stores together; only in the user's file",
        example='"50 GB"',
        user_only=True,
        cautious=_NOTHING_REMOVED,
    )
    lock_timeout: float = _setting(
        30.0, _seconds, "seconds to wait for another process that uses the store", example="30"
    )
    hook_lock_timeout: float = _setting(
        2.0,
        _seconds,
        "seconds that an agent's hook waits for a stuck process that holds the store",
        example="2",
    )
    wait_for_edits: float = _setting(
        5.0,
        _seconds,
        "seconds that a checkpoint waits for an edit or tool call of another session; then it is "
        "made and marked partial",
        example="5",
    )
    setuid: str = _setting(
        "restore",
        _Choice("restore", "drop"),
        "restore setuid and setgid bits",
        cautious=Cautious(lambda *_: "drop"),
    )
    max_manual_checkpoints: int = _setting(
        0,
        _count,
        "the maximum number of manual checkpoints in a session; 0 for no limit",
        example="50 or 0 for no limit",
    )
    components: tuple[str, ...] = _setting(
        ("git", "agents", "postgres", "worktrees", "external", "environment"),
        _component_names,
        "what to save besides files; names that are not built in are plug-ins",
        example='["git"] or [] for files alone',
    )
    component_timeout: float = _setting(
        20.0, _seconds, "the maximum seconds for one step of a component", example="20"
    )
    component_max_size: int = _setting(
        1_000_000_000,
        parse_size,
        "the maximum bytes that one component can add to a checkpoint",
        example='"1 GB"',
    )
    auto_edit: str = _setting("on", _ON_OFF, "a checkpoint before an agent edits or writes a file")
    auto_shell: str = _setting("on", _ON_OFF, "a checkpoint before an agent runs a command")
    auto_after_edit: str = _setting(
        "on", _ON_OFF, "a checkpoint after an agent's edit, so that undo keeps your later edits"
    )
    auto_after_shell: str = _setting(
        "on", _ON_OFF, "a checkpoint after an agent's command, if it changed files"
    )
    auto_message: str = _setting("on", _ON_OFF, "a checkpoint before each message to an agent")
    auto_turn_end: str = _setting(
        "on", _ON_OFF, "a checkpoint after an agent's answer, if files changed"
    )
    restore_on_failure: str = _setting("off", _ON_OFF, "roll back tool calls that fail")
    check_command: tuple[str, ...] = _setting(
        (),
        _command,
        "a command to run after an agent's tool call changed files; a failure is reported, "
        "and rolled back with restore_on_failure; not read from a project's file",
        from_project=FromProject.NEVER,
        example='["make", "test"] or [] for none',
    )
    check_timeout: float = _setting(
        60.0,
        _seconds,
        "the maximum seconds for check_command; a check that times out is ignored",
        example="60",
    )
    defaults: str = _setting(
        "on",
        _ON_OFF,
        "apply the built-in ignore rules (caches and similar)",
        decides_capture=True,
    )
    key_file: str = _setting(
        "",
        _file,
        "the key file of encrypted stores; only in the user's file",
        from_project=FromProject.NEVER,
        example='"~/keys/shop.key"',
        user_only=True,
    )
    watch: str = _setting(
        "on",
        _Choice("on", "off", "paranoid"),
        "watch for changes; paranoid compares each reported change with a full scan",
    )
    auto_files: int = _setting(
        5,
        _count,
        "the number of changed files after which a watched workspace is saved; 0 for never",
        example="5 or 0 for never",
    )
    auto_interval: float = _setting(
        30.0,
        _minutes,
        "the minutes after which changes in a watched workspace are saved; 0 for never",
        example="30 or 0 for never",
    )
    end_of_day: str = _setting(
        "00:00",
        _time_of_day,
        "the time of the daily checkpoint of a watched workspace; empty for never",
        example='"18:00" or "" for never',
    )
    auto_merge: tuple[str, ...] = _setting(
        ("main", "master"),
        _branch_names("main_branches"),
        "branches that get a checkpoint when another branch is merged into them; empty for never",
        example='["main", "master"] or [] for never',
    )
    daemon: str = _setting("on", _ON_OFF, "agent hooks use the daemon, and start it")
    daemon_idle: float = _setting(
        30.0,
        _minutes,
        "idle minutes after which the daemon exits; 0 for never; only in the user's file",
        from_project=FromProject.NEVER,
        example="30 or 0 for never",
        user_only=True,
    )
    postgres: tuple[str, ...] = _setting(
        ("HOLDFAST_POSTGRES_URL",),
        _url_sources,
        "environment variables, or files of mode 0600, that contain the URL of a PostgreSQL "
        "database to save and restore; not read from a project's file",
        from_project=FromProject.NEVER,
        example='["DATABASE_URL"] or ["~/.config/shop/database-url"]',
    )
    agent_state: tuple[str, ...] = _setting(
        (),
        _agent_state,
        "files of agents to save: agent names and patterns; not read from a project's file",
        from_project=FromProject.NEVER,
        example='["claude-code", "~/.notes/**/*.md"]',
    )
    nested_repositories: str = _setting(
        "on",
        _Choice("on", "off", "auto"),
        "capture files of repositories inside the workspace; auto: only if the workspace is a "
        "project itself",
    )
    git_nested: str = _setting("off", _ON_OFF, "save the git state of submodules and nested clones")
    accept_template: str = _setting(
        "{subject}\n\n{reasons}",
        _template,
        "the commit message that accept writes: {subject}, {reasons}, {checkpoints}, {goals}, "
        "{session}",
        from_project=FromProject.ALWAYS,
        example='"{subject}\\n\\n{reasons}"',
    )
    accept_timeout: float = _setting(
        600.0,
        _seconds,
        "the maximum seconds for git commit and its hooks in accept; 0 for no limit",
        example="600 or 0 for no limit",
    )
    mirror: str = _setting(
        "",
        _branch_names("mirror_branch"),
        "the branch that gets a commit for each checkpoint; true for holdfast-checkpoints, "
        "empty for none; not read from a project's file",
        from_project=FromProject.NEVER,
        example='true or "holdfast-checkpoints" or "" for none',
    )
    mirror_refs: str = _setting(
        "",
        _branch_names("mirror_place"),
        "where below refs/ the mirror puts approved checkpoints and rounds; empty for the "
        "name of the branch; not read from a project's file",
        from_project=FromProject.NEVER,
        example='"tags" or "holdfast-checkpoints"',
    )
    worktree_files: str = _setting(
        "manual",
        _Choice("manual", "always", "never", former={"on": "always", "off": "never"}),
        "when to save the files of other worktrees too: with manual and risky checkpoints "
        "(manual), always or never",
        example='"always" or "never"',
    )
    record_environment: str = _setting(
        "manual",
        _Choice("manual", "always", "never"),
        "when to record tool versions and names of environment variables: with the checkpoint "
        "command, the checkpoint tools and risky commands (manual), always or never",
        example='"always" or "never"',
    )
    retention: tuple[Any, ...] = _setting(
        (),
        _retention,
        "how long and how many checkpoints of each kind to keep: age, most, least, before_messages",
        example='{tool = {age = "24 hours", most = 10}}',
        cautious=Cautious(_nothing_expires),
    )


RETIRED: Mapping[str, str] = {
    "max_automatic_per_hour": "automatic checkpoints are no longer replaced",
}
"""Settings of earlier versions. A store or file that has one still opens, and it has no effect."""

KEYS: tuple[str, ...] = tuple(f.name for f in fields(Settings))
DEFAULTS: Mapping[str, Any] = {f.name: f.default for f in fields(Settings)}
HELP: Mapping[str, str] = {f.name: f.metadata["help"] for f in fields(Settings)}
USER_ONLY = frozenset(f.name for f in fields(Settings) if f.metadata["user_only"])
"""Projects and stores must not choose the user's key. The daemon and the disk are shared by all
workspaces."""
SIZES = frozenset(f.name for f in fields(Settings) if f.metadata["check"] is parse_size)
"""Settings in bytes."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    f.name: check.allowed
    for f in fields(Settings)
    if isinstance(check := f.metadata["check"], _Choice)
}
"""The words that settings with a choice accept."""
FROM_PROJECT: Mapping[str, FromProject] = {
    f.name: f.metadata["from_project"] for f in fields(Settings)
}
EXAMPLES: Mapping[str, str] = {f.name: f.metadata["example"] for f in fields(Settings)}
_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    f.name: f.metadata["check"] for f in fields(Settings)
}


def unknown_setting(key: str) -> InvalidSetting:
    from difflib import get_close_matches

    close = get_close_matches(key, KEYS, 3)
    hint = f"did you mean: {', '.join(close)}" if close else f"settings are: {', '.join(KEYS)}"
    return InvalidSetting(f"unknown setting: {key!r}", hint=hint)


def check_setting(key: str, value: Any) -> Any:
    """The parsed value; `InvalidSetting` names the key and the expected values."""
    if key in RETIRED:
        raise InvalidSetting(
            f"the setting {key} no longer exists: {RETIRED[key]}",
            hint=f"remove it where it is still set: holdfast config unset {key}",
        )
    if key not in _CHECKS:
        raise unknown_setting(key)
    try:
        return _CHECKS[key](value)
    except ValueError as error:
        secret = isinstance(error, SecretRefused) or len(repr(value)) >= _LONGEST_SHOWN
        shown = key if secret else f"{key} cannot be {value!r}"
        raise InvalidSetting(
            f"{shown}: {error}",
            hint=f"expected: {EXAMPLES[key]}; for its meaning: holdfast config list",
        ) from None


def make_settings(values: Mapping[str, Any]) -> Settings:
    return Settings(**{key: check_setting(key, value) for key, value in values.items()})
