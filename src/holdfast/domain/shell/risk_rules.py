"""Risk rules, as tables: what each program may destroy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from holdfast.domain.external_paths import is_device
from holdfast.domain.shell.changed_paths import (
    edited_files,
    edits_in_place,
    operands,
    target_directory,
    unpacks,
)
from holdfast.domain.shell.commands import ShellCommand, ShellScript
from holdfast.domain.shell.expansion import flags, plain_words, program
from holdfast.domain.shell.findings import Finding, RiskGrade, notable, risky
from holdfast.domain.shell.inline_code import inline_code, is_code
from holdfast.domain.shell.wrappers import DIRECTORY_OPTIONS, EACH, SHELLS, is_dynamic, unwrap

_MANY = 3
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
    "helm": "uninstall delete rollback",
    "ansible": "-m -a",
    "dropdb": "",
    "dropuser": "",
}
_PUBLISHING = {
    "npm": "publish unpublish",
    "pnpm": "publish",
    "yarn": "publish",
    "cargo": "publish yank",
    "twine": "upload",
    "poetry": "publish",
    "uv": "publish",
    "gem": "push yank",
    "scp": "",
    "sftp": "",
}
_SENDS = re.compile(
    r"-X\s*(?!GET\b|HEAD\b)\w|--request[= ](?!GET\b|HEAD\b)\w|(?:^|\s)-(?:d|F|T)\b"
    r"|--(?:data|form|upload-file|post-data|json)"
)
_DISKS = frozenset("fdisk parted wipefs mkswap sgdisk blkdiscard hdparm".split())
_FORMATTERS = frozenset("prettier black isort gofmt rustfmt clang-format autopep8 eslint".split())

Rule = Callable[[str, Sequence[str]], Iterator[Finding]]


def findings_of(words: Sequence[str], *, many: bool) -> Iterator[Finding]:
    """The findings about one command. `many`: it runs on every name in a list."""
    name, arguments = program(words[0]), words[1:]
    rule = _RULES.get(name)
    if rule is not None:
        yield from rule(name, arguments)
        if many and name in ("rm", "sed", "mv", "perl", "truncate", "unlink", "chmod", "chown"):
            yield risky(f"{name} on every name in a list")
    elif name.startswith("mkfs") or name in _DISKS:
        yield risky(f"{name} rewrites a disk")
    elif set(_PUBLISHING.get(name, "").split()) & set(arguments[:2]) or name in ("scp", "sftp"):
        yield notable(f"{name} sends data, which cannot be undone here")
    elif name in _LOCK_FILES:
        yield from _packages(name, arguments)
    elif name in _REMOTE:
        wanted = _REMOTE[name].split()
        if not wanted or any(word in wanted for word in arguments):
            yield risky(f"{name} changes something that checkpoints do not contain")
    elif name in _FORMATTERS:
        if any(word in ("--write", "-w", "--fix", "-i") for word in arguments) or name == "black":
            yield notable(f"{name} rewrites files")
    elif is_code(name):
        yield from inline_code(name, arguments)
        if arguments[:1] == ("artisan",):
            yield from _framework("artisan", arguments[1:])
    else:
        yield from _unknown(words, many=many)


def _unknown(words: Sequence[str], *, many: bool) -> Iterator[Finding]:
    """The program is unknown, but its arguments may reveal its purpose. Options without a program
    follow a substitution that was read without a grammar."""
    dynamic = is_dynamic(words[0])
    if not dynamic and not words[0].startswith("-"):
        return
    destroys = flags(words) & {"r", "R", "f", "D", "--recursive", "--force", "--hard"}
    if destroys or (dynamic and (many or words[0] == EACH)):
        yield risky("an unknown command with destructive options")
    elif dynamic:
        yield notable("it is unknown which command runs")


def script_findings(script: ShellScript) -> Iterator[Finding]:
    """Findings about several commands of a script together."""
    names = [program(unwrap(c.words)[0][0]) for c in script.commands if unwrap(c.words)[0]]
    bare = [n for c in script.commands for n in map(program, c.words[:2]) if n in SHELLS]
    if bare and any(name in ("curl", "wget") for name in names):
        yield risky("runs downloaded code")


def sql_findings(commands: Iterable[ShellCommand]) -> Iterator[Finding]:
    """A database client, and SQL that drops something, anywhere in the script."""
    listed = list(commands)
    clients = [c.words[0] for c in listed if c.words and program(c.words[0]) in _CLIENTS]
    if not clients:
        return
    for command in listed:
        text = " ".join(command.words)[:20_000] + "\n" + command.fed[:100_000]
        found = _DESTRUCTIVE_SQL.search(text)
        if found is not None:
            words = " ".join(found.group().split()).strip(';"').lower()
            yield risky(f"{program(clients[0])}: {words}")
        elif _WRITING_SQL.search(text):
            yield notable(f"{program(clients[0])} changes rows")


def _is_wide(names: Sequence[str]) -> bool:
    """More than a person would check by eye: several names, a pattern, or an unknown one."""
    return len(names) > _MANY or any(
        set(name) & set("*?[{$") or name in (".", "..") for name in names
    )


def _rm(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    given, names = flags(arguments), plain_words(arguments)
    first = names[0] if names else ""
    shown = first or "its arguments"
    if given & {"r", "R", *("--recursive"[:size] for size in range(3, 12))}:
        yield risky(f"deletes {shown} and everything below", first)
    elif _is_wide(names):
        many = f"{len(names)} names or patterns, {shown} first"
        what = many if len(names) > 1 else f"everything that {shown} matches"
        yield risky(f"deletes {what}", first)
    else:
        yield notable(f"deletes {shown}", first)


def _find(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    if "-delete" in arguments:
        yield risky("find deletes every match")
    elif any(word.startswith(("-fprint", "-fls")) for word in arguments):
        yield risky("find overwrites a file with its results")
    elif any(word in ("-exec", "-execdir", "-ok") for word in arguments):
        yield notable("find runs a command on every match")


def _truncate_findings(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    for target in operands((name, *arguments)) or [""]:
        reason = f"{name} destroys the content of {target or 'a file'}"
        yield Finding(RiskGrade.RISKY, reason, target)


def _dd(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    for word in arguments:
        if word.startswith("of=") and word != "of=/dev/null":
            yield Finding(RiskGrade.RISKY, f"dd overwrites {word[3:]}", word[3:])


def _permissions(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    if flags(arguments) & {"R", "--recursive"}:
        yield Finding(RiskGrade.RISKY, f"{name} on a whole tree", keeps_content=True)
    else:
        yield notable(f"{name} changes {'permissions' if name == 'chmod' else 'owners'}")


def _in_place(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    if not edits_in_place(arguments):
        if name in ("perl", "ruby"):
            yield from inline_code(name, arguments)
        return
    files = edited_files(arguments)
    if not files or _is_wide(files):
        yield risky(f"{name} rewrites many files in place")
    else:
        yield notable(f"{name} rewrites {files[0]} in place", files[0])


def _tee(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    for target in plain_words(arguments):
        if is_device(target):
            continue
        if flags(arguments) & {"a", "--append"}:
            yield Finding(RiskGrade.NOTABLE, f"appends to {target}", target)
        else:
            yield Finding(RiskGrade.RISKY, f"overwrites {target}", target)


def _move_findings(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    words = (name, *arguments)
    names, into = operands(words), target_directory(words)
    names = names if into is None else [*names, into]
    if names and names[-1] == "/dev/null":
        yield risky(f"moves {names[0]} to /dev/null", names[0])
    elif len(names) > 1 and names[0] == "/dev/null":
        yield risky(f"empties {names[-1]}", names[-1])
    elif name == "rsync" and any(word.startswith("--delete") for word in arguments):
        yield risky("rsync deletes files that the source does not have")
    elif names:
        target = names[-1] if name != "mv" else ""  # mv also removes its source
        reason = f"{name} may replace {names[-1]}"
        yield Finding(RiskGrade.NOTABLE, reason, target, shown=names[-1])


def _unpack_findings(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    if name == "tar" and "--remove-files" in arguments:
        yield risky("tar deletes the files that it packs")
    if name != "tar" or unpacks((name, *arguments)):
        yield notable(f"{name} may replace files")


def _packages(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    lock, verbs = _LOCK_FILES[name]
    names = plain_words(arguments, DIRECTORY_OPTIONS.get(name, ()))
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
    if any(word in ("install", "uninstall") for word in plain_words(arguments)[:1]):
        yield notable("changes installed packages")


def _make(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    wiping = [word for word in arguments if re.search(r"clean|purge|reset|drop|nuke", word)]
    if wiping:
        yield notable(f"{name} {wiping[0]} may delete files")


def _docker(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    names = plain_words(arguments)
    volumes = "down" in names and bool(flags(arguments) & {"v", "--volumes"})
    if volumes or "prune" in names or names[:2] in (["volume", "rm"], ["system", "prune"]):
        yield risky(f"{name} deletes something that checkpoints do not contain")
    elif "rm" in names[:2] or "rmi" in names[:1]:
        yield notable(f"{name} removes containers or images")


def _storage(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    wiping = {"rm", "rb", "delete", "destroy", "remove", "purge", "db:drop", "db:reset", "pg:reset"}
    if set(arguments) & wiping or any(w.endswith((":destroy", ":delete")) for w in arguments):
        yield risky(f"{name} deletes something that checkpoints do not contain")


def _framework(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    text = " ".join(arguments)
    if re.search(
        r"db:(?:drop|reset|purge|wipe)|migrate[: ](?:reset|fresh|refresh)|db reset|downgrade|flush",
        text,
    ):
        yield risky(f"{name} may drop tables")


def _transfer_findings(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    if _SENDS.search(" ".join(arguments)[:20_000]):
        yield notable(f"{name} changes something elsewhere, which cannot be undone here")


def _remote(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    yield notable("changes on another machine cannot be undone here")


def _whole(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    names = plain_words(arguments)
    first = names[0] if names else ""
    yield risky(f"deletes {first or 'its arguments'} and everything below", first)


def _zip(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    if "m" in flags(arguments):
        yield risky("zip deletes the files that it packs")


def _crontab(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    if "r" in flags(arguments):
        yield risky("deletes the crontab")


def _git(name: str, arguments: Sequence[str]) -> Iterator[Finding]:
    from holdfast.domain.shell.git_risk import git_finding  # late: most commands are not git

    if (found := git_finding(arguments)) is not None:
        yield found


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("rm", "unlink", "rmdir", "srm"), _rm),
    **dict.fromkeys(("truncate", "shred"), _truncate_findings),
    **dict.fromkeys(("chmod", "chown", "chgrp", "chattr", "setfacl"), _permissions),
    **dict.fromkeys(("rimraf", "del-cli", "trash", "trash-put", "trash-cli"), _whole),
    **dict.fromkeys(("ssh", "mosh", "autossh"), _remote),
    **dict.fromkeys(("curl", "wget", "http", "https", "xh"), _transfer_findings),
    **dict.fromkeys(("sed", "gsed", "perl", "ruby", "awk", "gawk"), _in_place),
    **dict.fromkeys(("tee", "sponge"), _tee),
    **dict.fromkeys(("mv", "cp", "rsync", "install", "ln"), _move_findings),
    **dict.fromkeys(("tar", "unzip", "7z", "patch"), _unpack_findings),
    **dict.fromkeys(("pip", "pip3"), _pip),
    **dict.fromkeys(("make", "gmake", "just", "task"), _make),
    **dict.fromkeys(("docker", "podman", "docker-compose"), _docker),
    **dict.fromkeys(
        "aws gcloud az gsutil heroku gh doctl vercel fly flyctl netlify railway wrangler".split(),
        _storage,
    ),
    **dict.fromkeys(("rails", "rake", "prisma", "alembic", "artisan", "supabase"), _framework),
    "find": _find,
    "dd": _dd,
    "zip": _zip,
    "git": _git,
    "crontab": _crontab,
}
