"""Commands that run other commands. They are removed from the front of a command, and followed if
they contain a script or a command for another machine.

    sudo, env, timeout, npx, uv run …     → the command after them counts
    bash -c, eval, trap, watch, su -c …   → their text is parsed as a separate script
    ssh, docker exec, kubectl exec …      → the same, on a machine outside all checkpoints

Pure and bounded. A command whose name only the shell knows is not followed; see `is_dynamic`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from holdfast.domain.shell.commands import SUBSTITUTION
from holdfast.domain.shell.expansion import after_options, plain_words, program
from holdfast.values.classes import NamedTuple

_MOST_WORDS = 4_000
_MOST_CALLED = 20
_MOST_OPTIONS = 30
DIRECTORY_OPTIONS = {
    "git": ("-C", "--work-tree"),
    "make": ("-C", "--directory"),
    "gmake": ("-C", "--directory"),
    "ninja": ("-C", "--chdir"),
    "just": ("-d", "--working-directory"),
    "tar": ("-C", "--directory"),
    "env": ("-C", "--chdir"),
    "patch": ("-d", "--directory"),
    "unzip": ("-d",),
    "npm": ("-C", "--prefix"),
    "pnpm": ("-C", "--dir"),
    "yarn": ("--cwd",),
    "bun": ("--cwd",),
    "uv": ("--directory", "--project"),
    "poetry": ("-C", "--directory"),
    "cargo": ("-C",),
    "go": ("-C",),
    "composer": ("-d", "--working-dir"),
    "gradle": ("-p", "--project-dir"),
    "mvn": ("-f", "--file"),
}
"""Programs that work in a directory, each with the options that choose another one."""
_WORK_TREE = "GIT_WORK_TREE="
_DIRECTORY_OPTIONS = (
    _WORK_TREE,
    *{option for options in DIRECTORY_OPTIONS.values() for option in options},
)
_OTHER_VALUES = {
    "git": ("-c", "--git-dir", "--namespace", "--config-env", "--exec-path"),
    "env": ("-c", "-u", "--unset"),
}
"""Other options before the verb that take the next word as value."""

_WRAPPERS = frozenset(
    "sudo doas env nohup time nice ionice timeout command builtin exec stdbuf setsid busybox chrt "
    "unbuffer caffeinate xargs parallel npx bunx pnpx uvx pipx chroot flock coproc strace ltrace "
    "unshare nsenter taskset noglob nocorrect watch firejail bwrap shx dotenv runuser entr".split()
)
_OPERANDS_FIRST = {"timeout": 1, "chroot": 1, "flock": 1, "taskset": 1}
"""The number of words between a wrapper's options and the command."""

_RUNNERS = {
    "uv": ("run", "x"),
    "pnpm": ("dlx", "exec"),
    "npm": ("exec", "x"),
    "yarn": ("dlx", "exec"),
    "bun": ("x",),
    "poetry": ("run",),
    "pdm": ("run",),
    "pipenv": ("run",),
    "hatch": ("run",),
    "conda": ("run",),
    "bundle": ("exec",),
    "mise": ("exec", "x"),
    "pipx": ("run",),
    "corepack": ("pnpm", "yarn", "npm"),
}
"""Programs with a verb that runs another program."""

_VALUES = {
    "sudo": "u g C h p r t U D R T",
    "doas": "u C",
    "env": "u C",
    "nice": "n",
    "ionice": "c n p P u",
    "timeout": "k s",
    "stdbuf": "i o e",
    "xargs": "a d E I L n P s",
    "parallel": "j a I S N",
    "time": "f o",
    "watch": "n q",
    "chrt": "p T P D",
    "taskset": "",
    "flock": "w E",
    "strace": "e o p s S u E a P X",
    "ltrace": "e o p s S u a",
    "npx": "p",
    "pnpx": "p",
    "bunx": "p",
    "uvx": "p w",
    "uv": "p w",
    "poetry": "C P",
    "conda": "n p",
    "npm": "p w C",
    "pnpm": "C F",
    "exec": "a",
    "nsenter": "t S G",
    "unshare": "S G R w",
    "chroot": "",
    "runuser": "u g G s w",
}
"""For each wrapper, the option letters that take the next word as value."""

_LONG_VALUES = frozenset(
    "--user --group --adjustment --chdir --unset --signal --with --kill-after --max-args "
    "--max-procs --delimiter --arg-file --package --interval --python --directory --project "
    "--from --filter --timeout --wait --prefix --name --host --jobs --prompt".split()
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
EACH = "{}"
"""The placeholder for each line of a list."""

SHELLS = frozenset("sh bash zsh dash ksh fish ash mksh pwsh powershell".split())
_TEXT_OPTIONS = {"su": "-c", "runuser": "-c", "script": "-c", "flock": "-c", "npx": "-c"}
_COMMAND_OPTION = re.compile(r"-\w*c\w*|-Command|--command")
_TERMINALS = frozenset(("tmux", "screen"))
_TERMINAL_VALUES = ("-S", "-t", "-L", "-f", "-c", "-s")
_REMOTE_CALLERS = frozenset(
    "docker podman nerdctl docker-compose kubectl oc lxc vagrant multipass ansible".split()
)
_REMOTE_VERBS = frozenset(("exec", "run", "ssh", "shell"))
_SSH_VALUES = re.compile(r"-[bcDEeFIiJLlmOopQRSWw]")
_SYSTEM = re.compile(r"system\(\s*\\?\"((?:[^\"\\]|\\.)*?)\\?\"")


class Called(NamedTuple):
    """A command run by another: text for a shell, or words. `place` says where, if not here."""

    text: str = ""
    words: tuple[str, ...] = ()
    place: str = ""


def is_dynamic(word: str) -> bool:
    """Whether only the shell knows which program this is."""
    return SUBSTITUTION in word or "$" in word or "`" in word or word == EACH


def unwrap(words: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """The command that actually runs, and whether its arguments come from a list (xargs)."""
    rest, many = list(words[:_MOST_WORDS]), False
    while rest:
        if _ASSIGNMENT.match(rest[0]):
            rest = rest[1:]
            continue
        name = program(rest[0])
        behind = _wrapped_command(name, rest)
        if not behind:
            break
        many = many or name in ("xargs", "parallel")
        rest = behind
    return tuple(rest), many


def _wrapped_command(name: str, words: list[str]) -> list[str]:
    """The command after a wrapper; empty if this is not a wrapper, or nothing follows."""
    if name in _RUNNERS:
        rest = after_options(words[1:], partial(_takes_value, name))
        if rest and rest[0] in _RUNNERS[name]:
            return _without_options(name, rest[1:], 0)
        if name != "pipx":
            return []
    if name not in _WRAPPERS or (name in _TEXT_OPTIONS and _TEXT_OPTIONS[name] in words):
        return []
    return _without_options(name, words[1:], _OPERANDS_FIRST.get(name, 0))


def _takes_value(name: str, option: str) -> bool:
    if option.startswith("--"):
        return option in _LONG_VALUES
    return len(option) == 2 and option[1] in _VALUES.get(name, "").split()


def _without_options(name: str, words: list[str], operands: int) -> list[str]:
    position = 0
    while position < len(words) and words[position].startswith("-"):
        if words[position] == "--":
            position += 1
            break
        position += 1 + _takes_value(name, words[position])
    while position < len(words) and _ASSIGNMENT.match(words[position]):
        position += 1
    return words[position + operands :]


def chosen_directory(words: Sequence[str]) -> str | None:
    """The directory that an option selects for a command: `git -C x`, `make -C x`, `env -C x`."""
    chosen: str | None = None
    if not any(word.startswith(_DIRECTORY_OPTIONS) for word in words[:_MOST_WORDS]):
        return None  # nearly all commands
    behind = unwrap(words)[0]
    outer = words if program(words[0]) in DIRECTORY_OPTIONS and len(behind) < len(words) else ()
    trees = [w.removeprefix(_WORK_TREE) for w in words if w.startswith(_WORK_TREE)]
    if trees and behind and program(behind[0]) == "git":
        chosen = trees[-1]
    for part in (outer, behind):
        for found in _directories(part[: _MOST_OPTIONS + 1]):
            further = chosen is not None and not found.startswith(("/", "~", "$"))
            chosen = f"{chosen}/{found}" if further else found
    return chosen


def _directories(words: Sequence[str]) -> Iterator[str]:
    """Each `-C`, relative to the one before it. After git's verb, and in the command that env runs,
    it has another meaning."""
    name = program(words[0]) if words else ""
    options = DIRECTORY_OPTIONS.get(name, ())
    position = 1
    while options and position < len(words):
        word = words[position]
        value = words[position + 1 : position + 2]
        if word in options:
            yield from value
            position += 1
        elif word.startswith("--") and word.partition("=")[0] in options:
            yield word.partition("=")[2]
        elif word.startswith(options) and not word.startswith("--"):
            yield word[2:]
        elif word in _OTHER_VALUES.get(name, ()):
            position += 1
        elif name in ("git", "env") and not word.startswith("-"):
            return
        position += 1


def called(words: Sequence[str], fed: str) -> Iterator[Called]:
    """The commands that an unwrapped command runs besides itself; `fed` is its input."""
    found = 0
    for one in _called(words, fed):
        if one.text or one.words:
            yield one
            found += 1
            if found == _MOST_CALLED:
                return


def _called(words: Sequence[str], fed: str) -> Iterator[Called]:
    name, arguments = program(words[0]), list(words[1:])
    if len(words) == 1 and len(words[0].split()) > 1:
        yield Called(words[0])  # watch 'rm -rf src'
    elif name == "eval":
        yield Called(" ".join(arguments))
    elif name in SHELLS or (is_dynamic(words[0]) and "-c" in arguments):
        yield from _shell(arguments, fed)
    elif name == "trap":
        yield from (Called(word) for word in arguments[:1] if len(word) > 1)
    elif name in ("at", "batch"):
        yield Called(fed)
    elif name == "alias":
        yield from (Called(word.partition("=")[2]) for word in arguments)
    elif name in _TEXT_OPTIONS and _TEXT_OPTIONS[name] in arguments[:-1]:
        yield Called(arguments[arguments.index(_TEXT_OPTIONS[name]) + 1])
    elif name in _TERMINALS:
        yield from (Called(word) for word in arguments if " " in word.strip())
        yield Called(
            words=tuple(after_options(arguments, lambda option: option in _TERMINAL_VALUES))
        )
    elif name == "find":
        yield from _found(arguments)
    elif name in ("fd", "fdfind"):
        yield from _by_fd(arguments)
    elif name == "git":
        yield from _by_git(arguments)
    elif name in ("awk", "gawk", "mawk"):
        yield from (Called(text) for text in _SYSTEM.findall(" ".join(arguments)[:20_000]))
    elif name in ("ssh", "mosh", "autossh"):
        yield from _by_ssh(arguments)
    elif name in _REMOTE_CALLERS and _REMOTE_VERBS & set(arguments[:6]):
        yield from _inside(name, arguments)


def _shell(arguments: list[str], fed: str) -> Iterator[Called]:
    for position, word in enumerate(arguments[:-1]):
        if _COMMAND_OPTION.fullmatch(word):
            text = arguments[position + 1]
            yield Called(words=(EACH,)) if text.strip() == EACH else Called(text)
            return
    if not plain_words(arguments) or "-s" in arguments:
        yield Called(fed)


def runs_unseen_input(words: Sequence[str], fed: str) -> bool:
    """Whether this is a shell that runs input which cannot be seen here."""
    arguments = words[1:]
    plain = not plain_words(arguments) or "-s" in arguments
    asked = any(word in ("--version", "--help", "-c") for word in arguments)
    return program(words[0]) in SHELLS and plain and not fed and not asked


def _found(arguments: list[str]) -> Iterator[Called]:
    """The commands that find runs. Each may run on many names."""
    for position, word in enumerate(arguments):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            command = []
            for part in arguments[position + 1 :]:
                if part in (";", "+"):
                    break
                command.append("*" if part == EACH else part)
            yield Called(words=tuple(command))


def _by_fd(arguments: list[str]) -> Iterator[Called]:
    for position, word in enumerate(arguments):
        if word in ("-x", "--exec", "-X", "--exec-batch"):
            command = [part for part in arguments[position + 1 :] if not part.startswith("{")]
            yield Called(words=(*command, "*"))
            return


def _by_git(arguments: list[str]) -> Iterator[Called]:
    for position, word in enumerate(arguments[:_MOST_CALLED]):
        behind = arguments[position + 1 :]
        if word == "-c" and behind and behind[0].startswith("alias.") and "=!" in behind[0]:
            yield Called(behind[0].partition("=!")[2])
        elif word == "foreach" and "submodule" in arguments[:position]:
            yield Called(" ".join(w for w in behind if w != "--recursive"))
            return
        elif word == "run" and "bisect" in arguments[:position]:
            yield Called(words=tuple(behind))
            return
        elif word in ("-x", "--exec") and "rebase" in arguments[:position] and behind:
            yield Called(behind[0])


def _by_ssh(arguments: list[str]) -> Iterator[Called]:
    rest = after_options(arguments, lambda option: _SSH_VALUES.fullmatch(option) is not None)
    if rest:
        yield Called(" ".join(rest[1:]) or ":", place=f"on {rest[0]}")


def _inside(name: str, arguments: list[str]) -> Iterator[Called]:
    """Commands in a container. The start of the command depends on countless options, so each
    possible start is tried."""
    if "--" in arguments:
        yield Called(words=tuple(arguments[arguments.index("--") + 1 :]), place=f"inside {name}")
        return
    for position, word in enumerate(arguments[:_MOST_CALLED]):
        if not word.startswith("-") and position:
            yield Called(words=tuple(arguments[position:]), place=f"inside {name}")
