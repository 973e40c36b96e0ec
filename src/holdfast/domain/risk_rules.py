"""The rules of risk, as tables: what each program may destroy, and which of its words are paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from holdfast.domain.risk import Finding, RiskGrade
from holdfast.domain.shell_commands import ShellCommand, ShellScript

_MANY = 3
_WRAPPERS = frozenset(
    "sudo doas env nohup time nice ionice timeout command builtin exec stdbuf setsid busybox chrt "
    "unbuffer caffeinate xargs parallel".split()
)
_WRAPPER_VALUES = re.compile(
    r"-(?:u|g|n|c|k|s|C|h|I|L|P|d|E|a)|--(?:user|group|adjustment|chdir|unset|signal|kill-after"
    r"|max-args|max-procs|delimiter|arg-file|replace)"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_SHELLS = frozenset("sh bash zsh dash ksh fish ash".split())
_CLIENTS = frozenset(
    "psql mysql mariadb sqlite3 sqlite duckdb clickhouse-client cockroach sqlcmd sqlplus mongosh "
    "mongo redis-cli cqlsh".split()
)
_DESTRUCTIVE_SQL = re.compile(
    r"\bdrop\s+(table|database|schema|view|index|column|role|user|collection)\b"
    r"|\b(truncate)\s+(?:table\s+)?\w|\b(dropdatabase|flushall|flushdb)\b"
    r"|\.(drop)\s*\(|\b(delete)\s+from\s+[\w.\"`]+\s*(?:;|$|\")",
    re.IGNORECASE | re.MULTILINE,
)
_WRITING_SQL = re.compile(r"\b(delete\s+from|update\s+\S+\s+set|alter\s+table)\b", re.IGNORECASE)
_DELETING_CODE = re.compile(
    r"rmtree|os\.(?:remove|unlink|rmdir)|\.unlink\(|rmSync|unlinkSync|rimraf|fs\.rm\b|FileUtils\.rm"
)
_WRITING_CODE = re.compile(r"open\([^)]*['\"]w|write_text|write_bytes|writeFile")
_LOCK_FILES = {
    "npm": ("package-lock.json", "install i add uninstall remove rm update up dedupe audit link"),
    "pnpm": ("pnpm-lock.yaml", "install i add remove rm update up dedupe import"),
    "yarn": ("yarn.lock", "install add remove upgrade up dedupe import"),
    "bun": ("bun.lock", "install i add remove update"),
    "poetry": ("poetry.lock", "add remove update lock"),
    "uv": ("uv.lock", "add remove lock sync"),
    "pdm": ("pdm.lock", "add remove update lock"),
    "pipenv": ("Pipfile.lock", "install uninstall update lock"),
    "cargo": ("Cargo.lock", "add remove rm update"),
    "go": ("go.sum", "get"),
    "bundle": ("Gemfile.lock", "install update add remove"),
    "composer": ("composer.lock", "install require remove update"),
    "mix": ("mix.lock", "deps.get deps.update deps.unlock"),
}
_REMOTE = {
    "kubectl": "delete drain replace",
    "terraform": "destroy apply",
    "tofu": "destroy apply",
    "pulumi": "destroy up",
    "dropdb": "",
    "dropuser": "",
}
_DISKS = frozenset("fdisk parted wipefs mkswap sgdisk blkdiscard hdparm".split())
_NAMING = frozenset("rm rmdir unlink mv cp tee ln touch mkdir rsync install patch unzip".split())
_FORMATTERS = frozenset("prettier black isort gofmt rustfmt clang-format autopep8 eslint".split())

Rule = Callable[[str, Sequence[str]], Iterator[Finding]]


def risky(reason: str) -> Finding:
    return Finding(RiskGrade.RISKY, reason)


def notable(reason: str) -> Finding:
    return Finding(RiskGrade.NOTABLE, reason)


def program(word: str) -> str:
    return word.rsplit("/", 1)[-1].lstrip("\\")


def unwrap(words: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """The command that really runs, and whether it gets its arguments from a list (xargs)."""
    rest, many = list(words[:4_000]), False
    while rest:
        if _ASSIGNMENT.match(rest[0]):
            rest = rest[1:]
            continue
        name = program(rest[0])
        if name not in _WRAPPERS or len(rest) == 1:
            break
        many = many or name in ("xargs", "parallel")
        rest = _behind_options(rest[1:], counted=name == "timeout")
    return tuple(rest), many


def _behind_options(words: list[str], *, counted: bool) -> list[str]:
    position = 0
    while position < len(words) and words[position].startswith("-"):
        position += 2 if _WRAPPER_VALUES.fullmatch(words[position]) else 1
    while position < len(words) and _ASSIGNMENT.match(words[position]):
        position += 1
    return words[position + counted :]


def called_script(words: Sequence[str]) -> str | None:
    """The text that a command hands to a shell."""
    name = program(words[0])
    if name == "eval":
        return " ".join(words[1:])
    if name in _SHELLS:
        for position, word in enumerate(words[1:-1], 1):
            if re.fullmatch(r"-\w*c\w*", word):
                return words[position + 1]
    if name == "find":
        for position, word in enumerate(words):
            if word in ("-exec", "-execdir", "-ok", "-okdir"):
                return " ".join(w if w != "{}" else "*" for w in words[position + 1 :]).rstrip(
                    ";+ "
                )
    return None


def operands(words: Sequence[str]) -> Iterator[str]:
    """The words of a command that are paths it changes."""
    name = program(words[0])
    arguments = [word for word in words[1:] if not word.startswith("-")]
    if name == "dd":
        yield from (w.removeprefix("of=") for w in words if w.startswith("of="))
    elif name in ("chmod", "chown", "chgrp"):
        yield from arguments[1:]
    elif name in ("sed", "gsed", "perl", "ruby") and _edits_in_place(words):
        yield from _edited_files(words[1:])[:20]
    elif name == "find":
        yield from _until_option(words[1:])
    elif name in ("truncate", "shred"):
        yield from arguments[-1:]
    elif name in _NAMING:
        yield from arguments


def _until_option(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if word.startswith(("-", "(", "!")):
            return
        yield word


def findings_of(words: Sequence[str], *, many: bool) -> Iterator[Finding]:
    """What one command may do; `many`: to all names of a list."""
    name, arguments = program(words[0]), words[1:]
    rule = _RULES.get(name)
    if rule is not None:
        yield from rule(name, arguments)
        if many and name in ("rm", "sed", "mv", "perl", "truncate", "unlink", "chmod", "chown"):
            yield risky(f"{name} on every name of a list")
    elif name.startswith("mkfs") or name in _DISKS:
        yield risky(f"{name} rewrites a disk")
    elif name in _LOCK_FILES:
        yield from _packages(name, arguments)
    elif name in _REMOTE:
        wanted = _REMOTE[name].split()
        if not wanted or any(word in wanted for word in arguments):
            yield risky(f"{name} changes what no checkpoint holds")
    elif name in _FORMATTERS:
        if any(word in ("--write", "-w", "--fix", "-i") for word in arguments) or name == "black":
            yield notable(f"{name} rewrites files")
    elif name in ("python", "python3", "node", "perl", "ruby", "deno", "php"):
        yield from _inline_code(name, arguments)


def script_findings(script: ShellScript) -> Iterator[Finding]:
    """What only the commands of a script together tell."""
    names = [program(unwrap(c.words)[0][0]) for c in script.commands if unwrap(c.words)[0]]
    bare = [n for c in script.commands for n in map(program, c.words[:2]) if n in _SHELLS]
    if bare and any(name in ("curl", "wget") for name in names):
        yield risky("runs what it downloads")


def sql_findings(commands: Iterable[ShellCommand]) -> Iterator[Finding]:
    """A client of a database, and words that drop something, anywhere in the script."""
    told = list(commands)
    clients = [c.words[0] for c in told if c.words and program(c.words[0]) in _CLIENTS]
    if not clients:
        return
    for command in told:
        text = " ".join(command.words)[:20_000] + "\n" + command.fed[:100_000]
        found = _DESTRUCTIVE_SQL.search(text)
        if found is not None:
            words = " ".join(found.group().split()).strip(';"').lower()
            yield risky(f"{program(clients[0])}: {words}")
        elif _WRITING_SQL.search(text):
            yield notable(f"{program(clients[0])} changes rows")


def _flags(arguments: Sequence[str]) -> set[str]:
    """Single letters of bundled short options, and long options without their values."""
    found: set[str] = set()
    for word in arguments:
        if word == "--":
            break
        if word.startswith("--"):
            found.add(word.split("=")[0])
        elif word.startswith("-"):
            found.update(word[1:])
    return found


def _names(arguments: Sequence[str]) -> list[str]:
    return [word for word in arguments if not word.startswith("-")]


def _is_wide(names: Sequence[str]) -> bool:
    """More than somebody would check by eye: several, or a pattern, or what nobody can see."""
    return len(names) > _MANY or any(
        set(name) & set("*?[{$") or name in (".", "..") for name in names
    )


def _rm(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    flags, names = _flags(arguments), _names(arguments)
    shown = names[0] if names else "what it is given"
    if flags & {"r", "R", "--recursive"}:
        yield risky(f"deletes {shown} and everything below")
    elif _is_wide(names):
        yield risky(f"deletes {len(names)} names or patterns, {shown} first")
    else:
        yield notable(f"deletes {shown}")


def _find(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    if "-delete" in arguments:
        yield risky("find deletes what it finds")
    elif any(word in ("-exec", "-execdir", "-ok") for word in arguments):
        yield notable("find runs a command on what it finds")


def _truncating(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    names = _names(arguments)
    yield risky(f"{name} destroys the content of {names[-1] if names else 'a file'}")


def _dd(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    for word in arguments:
        if word.startswith("of=") and word != "of=/dev/null":
            yield risky(f"dd overwrites {word[3:]}")


def _permissions(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    if _flags(arguments) & {"R", "--recursive"}:
        yield risky(f"{name} on a whole tree")
    else:
        yield notable(
            f"{name} changes permissions" if name == "chmod" else f"{name} changes owners"
        )


def _edits_in_place(words: Sequence[str]) -> bool:
    return any(
        re.match(r"-(?:[a-zA-Z0]*i(?:\.\w*)?$|i|-in-place)", word)
        for word in words
        if len(word) > 1
    )


def _in_place(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    if not _edits_in_place(arguments):
        if name in ("perl", "ruby"):
            yield from _inline_code(name, arguments)
        return
    files = _edited_files(arguments)
    if not files or _is_wide(files):
        yield risky(f"{name} rewrites many files in place")
    else:
        yield notable(f"{name} rewrites {files[0]} in place")


def _edited_files(arguments: Sequence[str]) -> list[str]:
    """The files of `sed` and its like: behind the script, which is the first word or an option."""
    values = {
        n + 1 for n, word in enumerate(arguments) if word in ("-e", "-f", "-pe", "-pie", "-ne")
    }
    names = [w for n, w in enumerate(arguments) if n not in values and not w.startswith("-")]
    return names if values else names[1:]


def _inline_code(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    text = " ".join(arguments)[:20_000]
    if not any(word in ("-c", "-e", "-r", "-p", "eval") for word in arguments):
        if any(word in ("flush", "reset_db") for word in arguments):
            yield risky("empties the database")
        return
    if _DELETING_CODE.search(text):
        yield risky(f"{name} code that deletes files")
    elif _WRITING_CODE.search(text):
        yield notable(f"{name} code that writes files")


def _tee(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    for target in _names(arguments):
        if target.startswith("/dev/"):
            continue
        if _flags(arguments) & {"a", "--append"}:
            yield notable(f"appends to {target}")
        else:
            yield risky(f"overwrites {target}")


def _moving(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    names = _names(arguments)
    if names and names[-1] == "/dev/null":
        yield risky(f"moves {names[0]} to nowhere")
    elif name == "rsync" and any(word.startswith("--delete") for word in arguments):
        yield risky("rsync deletes what the source does not have")
    elif names:
        yield notable(f"{name} may replace {names[-1]}")


def _unpacking(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    unpacks = name != "tar" or any(
        re.fullmatch(r"-?\w*x\w*|--extract", word) for word in arguments[:2]
    )
    if unpacks:
        yield notable(f"{name} may replace files")


def _packages(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    lock, verbs = _LOCK_FILES[name]
    names = _names(arguments)
    verb = names[0] if names else ("install" if name in ("yarn", "bundle") else "")
    if verb in verbs.split() or (name == "go" and names[:2] == ["mod", "tidy"]):
        yield risky(f"rewrites {lock}")
    elif verb in ("ci", "clean"):
        yield notable(f"{name} {verb} replaces installed packages")
    elif name == "mix" and verb in ("ecto.drop", "ecto.reset"):
        yield risky("drops the database")
    elif "exec" in names[:1] or verb in ("run", "x", "dlx"):
        yield notable(f"{name} runs a script")


def _pip(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    if any(word in ("install", "uninstall") for word in _names(arguments)[:1]):
        yield notable("changes installed packages")


def _make(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    wiping = [word for word in arguments if re.search(r"clean|purge|reset|drop|nuke", word)]
    if wiping:
        yield notable(f"{name} {wiping[0]} may delete files")


def _docker(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    names = _names(arguments)
    volumes = "down" in names and bool(_flags(arguments) & {"v", "--volumes"})
    if volumes or "prune" in names or names[:2] in (["volume", "rm"], ["system", "prune"]):
        yield risky(f"{name} deletes what no checkpoint holds")
    elif "rm" in names[:2] or "rmi" in names[:1]:
        yield notable(f"{name} removes containers or images")


def _storage(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    if set(arguments) & {"rm", "rb", "delete", "destroy", "db:drop", "db:reset", "pg:reset"}:
        yield risky(f"{name} deletes what no checkpoint holds")


def _framework(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    text = " ".join(arguments)
    if re.search(r"db:(?:drop|reset|purge)|migrate (?:reset|fresh)|db reset|downgrade|flush", text):
        yield risky(f"{name} may drop tables")


def _crontab(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    if "r" in _flags(arguments):
        yield risky("deletes the crontab")


def _git(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    from holdfast.domain.risk_of_git import git_findings  # late: most commands are not git's

    yield from git_findings(arguments)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("rm", "unlink", "rmdir", "srm"), _rm),
    **dict.fromkeys(("truncate", "shred"), _truncating),
    **dict.fromkeys(("chmod", "chown", "chgrp", "chattr"), _permissions),
    **dict.fromkeys(("sed", "gsed", "perl", "ruby"), _in_place),
    **dict.fromkeys(("tee", "sponge"), _tee),
    **dict.fromkeys(("mv", "cp", "rsync", "install", "ln"), _moving),
    **dict.fromkeys(("tar", "unzip", "7z", "patch"), _unpacking),
    **dict.fromkeys(("pip", "pip3"), _pip),
    **dict.fromkeys(("make", "gmake", "just", "task"), _make),
    **dict.fromkeys(("docker", "podman", "docker-compose"), _docker),
    **dict.fromkeys(("aws", "gcloud", "az", "gsutil", "heroku", "gh", "doctl"), _storage),
    **dict.fromkeys(("rails", "rake", "prisma", "alembic", "artisan", "supabase"), _framework),
    "find": _find,
    "dd": _dd,
    "git": _git,
    "crontab": _crontab,
}
