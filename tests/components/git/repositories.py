"""Repositories in every state that work can leave them in, and what may be done to them next.

Everything here uses plain git and plain files, nothing of Holdfast: pictures of a repository are
taken by other means than the ones under test.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

OPERATION_FILES = (
    "MERGE_HEAD MERGE_MSG MERGE_MODE MERGE_RR CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD AUTO_MERGE "
    "ORIG_HEAD BISECT_LOG BISECT_START BISECT_TERMS BISECT_NAMES BISECT_EXPECTED_REV"
).split()
OPERATION_DIRECTORIES = ("rebase-merge", "rebase-apply", "sequencer")
NEVER_TOUCHED = ("config", "description", "hooks", "info", "packed-refs")


def git(place: Path, *arguments: str, check: bool = True, given: str | None = None) -> str:
    done = subprocess.run(
        ["git", "-c", "advice.detachedHead=false", *arguments],
        cwd=place,
        capture_output=True,
        text=True,
        input=given,
        errors="surrogateescape",
        check=False,
    )
    assert not check or done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, newline="")


def commit(place: Path, name: str, text: str) -> None:
    write(place / name, text)
    git(place, "add", "-A")
    git(place, "commit", "-qm", f"{name}: {text.strip()}")


def new_repository(place: Path, *settings: str) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    git(place, "init", "-q", "-b", "main")
    for setting in settings:
        git(place, "config", *setting.split("="))
    return place


def with_history(place: Path, *settings: str) -> Path:
    """Two commits on main, two on side, which differ in the same line; a stash entry."""
    new_repository(place, *settings)
    commit(place, "code.txt", "one\n")
    write(place / "docs/guide.txt", "guide\n")
    commit(place, "other.txt", "other\n")
    git(place, "checkout", "-qb", "side")
    commit(place, "code.txt", "of the side\n")
    git(place, "checkout", "-q", "main")
    write(place / "other.txt", "stashed\n")
    git(place, "stash", "-q")
    commit(place, "code.txt", "two\n")
    return place


def clean(place: Path) -> None:
    with_history(place)


def dirty(place: Path) -> None:
    with_history(place)
    write(place / "code.txt", "not staged\n")
    write(place / "untracked.txt", "nobody knows\n")


def staged(place: Path) -> None:
    with_history(place)
    write(place / "code.txt", "only ever staged\n")
    git(place, "add", "code.txt")
    write(place / "code.txt", "and changed again\n")
    write(place / "new.txt", "new\n")
    git(place, "add", "-N", "new.txt")
    git(place, "rm", "-q", "--cached", "other.txt")


def conflicted_merge(place: Path) -> None:
    with_history(place)
    git(place, "merge", "side", check=False)
    assert (place / ".git/MERGE_HEAD").exists()


def mid_rebase(place: Path) -> None:
    with_history(place)
    git(place, "checkout", "-q", "side")
    git(place, "rebase", "main", check=False)
    assert (place / ".git/rebase-merge").is_dir()


def detached(place: Path) -> None:
    with_history(place)
    git(place, "checkout", "-q", "HEAD~1")
    commit(place, "code.txt", "on no branch\n")


def unborn(place: Path) -> None:
    new_repository(place)
    write(place / "code.txt", "first\n")
    git(place, "add", "code.txt")
    write(place / "other.txt", "not added\n")


def submodule(place: Path) -> None:
    with_history(place)
    library = place.parent / f"{place.name}-library"
    with_history(library)
    source = str(library)
    git(place, "-c", "protocol.file.allow=always", "submodule", "add", "-q", source, "lib")
    git(place, "commit", "-qm", "with a submodule")
    commit(place / "lib", "code.txt", "ahead of what the index says\n")


def autocrlf(place: Path) -> None:
    with_history(place, "core.autocrlf=true")
    write(place / "code.txt", "windows\r\nlines\r\n")
    git(place, "add", "code.txt")
    write(place / "code.txt", "windows\r\nlines\r\nagain\r\n")


def pointer(place: Path) -> None:
    """A pointer to a large file, and a filter that would fail if it ever ran."""
    with_history(place, "filter.lfs.required=true")
    write(place / "large.bin", "version https://git-lfs.github.com/spec/v1\nsize 7\n")
    git(place, "add", "large.bin")
    git(place, "commit", "-qm", "a pointer")
    write(place / ".gitattributes", "*.bin filter=lfs\n")
    git(place, "config", "filter.lfs.clean", "false")
    git(place, "config", "filter.lfs.smudge", "false")
    write(place / "large.bin", "content")


def bisecting(place: Path) -> None:
    with_history(place)
    git(place, "bisect", "start", "main", "main~2")
    assert (place / ".git/BISECT_LOG").exists()


def worktree_of_bare(place: Path) -> None:
    origin = place.parent / f"{place.name}-origin"
    with_history(origin)
    bare = place.parent / f"{place.name}-bare.git"
    git(place.parent, "clone", "-q", "--bare", str(origin), str(bare))
    git(bare, "worktree", "add", "-q", str(place), "side")
    write(place / "code.txt", "staged here\n")
    git(place, "add", "code.txt")


SCENES: dict[str, Callable[[Path], None]] = {
    scene.__name__: scene
    for scene in (
        clean,
        dirty,
        staged,
        conflicted_merge,
        mid_rebase,
        detached,
        unborn,
        submodule,
        autocrlf,
        pointer,
        bisecting,
        worktree_of_bare,
    )
}


def end_operations(place: Path) -> None:
    """What an agent does that does not know what was going on."""
    for way in (("merge", "--abort"), ("rebase", "--abort"), ("bisect", "reset")):
        git(place, *way, check=False)
    git(place, "config", "--unset", "filter.lfs.clean", check=False)
    git(place, "config", "--unset", "filter.lfs.required", check=False)


def commits(place: Path) -> None:
    write(place / "agent.txt", "work of an agent\n")
    git(place, "add", "agent.txt")
    write(place / "code.txt", "resolved somehow\n")
    git(place, "add", "code.txt", check=False)
    git(place, "commit", "-qm", "agent 1", "--no-verify", check=False)
    git(place, "commit", "-qm", "agent 2", "--allow-empty", check=False)


def resets(place: Path) -> None:
    end_operations(place)
    git(place, "reset", "-q", "--hard", check=False)
    git(place, "reset", "-q", "--hard", "HEAD~1", check=False)


def switches(place: Path) -> None:
    end_operations(place)
    git(place, "checkout", "-qf", "-b", "elsewhere", check=False)
    commit(place, "elsewhere.txt", "elsewhere\n")


def deletes_the_branch(place: Path) -> None:
    end_operations(place)
    here = git(place, "symbolic-ref", "-q", "--short", "HEAD", check=False).strip()
    git(place, "checkout", "-qf", "--detach", check=False)
    for branch in {here, "main", "side"} - {""}:
        git(place, "branch", "-D", branch, check=False)


def collects(place: Path) -> None:
    resets(place)
    git(place, "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    git(place, "gc", "-q", "--prune=now")


def loses_the_index(place: Path) -> None:
    git_directory(place).joinpath("index").unlink()


ACTIONS: dict[str, Callable[[Path], None]] = {
    action.__name__: action
    for action in (
        commits,
        resets,
        switches,
        deletes_the_branch,
        collects,
        loses_the_index,
    )
}


def git_directory(place: Path) -> Path:
    link = place / ".git"
    if link.is_dir():
        return link
    return (place / link.read_text().removeprefix("gitdir:").strip()).resolve()


def copied(place: Path, to: Path) -> Path:
    subprocess.run(["cp", "-a", str(place), str(to)], check=True)
    return to


@dataclass(frozen=True)
class Picture:
    """What a repository is, read with plain git and plain files."""

    head: str
    index: bytes | None
    refs: dict[str, str]
    operation: dict[str, bytes]
    untouched: dict[str, bytes]
    status: str


def picture(place: Path) -> Picture:
    """Refs of all branches, tags and the stash; never those of Holdfast."""
    own = git_directory(place)
    index = own / "index"
    operation = {name: (own / name).read_bytes() for name in OPERATION_FILES if _is(own / name)}
    for directory in OPERATION_DIRECTORIES:
        for path in sorted((own / directory).rglob("*")):
            if path.is_file():
                operation[str(path.relative_to(own))] = path.read_bytes()
    listed = git(place, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    refs = dict(line.split(" ") for line in listed if not line.startswith("refs/holdfast/"))
    # Of the bisect under way, not of the user.
    operation |= {r: oid.encode() for r, oid in refs.items() if r.startswith("refs/bisect/")}
    refs = {ref: oid for ref, oid in refs.items() if not ref.startswith("refs/bisect/")}
    return Picture(
        head=(own / "HEAD").read_text(),
        index=index.read_bytes() if index.exists() else None,
        refs=refs,
        operation=operation,
        untouched=_untouched(place),
        status=_status(place),
    )


def _status(place: Path) -> str:
    """As git sees it, without letting it renew its index."""
    return git(
        place,
        *("-c", "filter.lfs.clean=", "-c", "filter.lfs.required=false"),
        *("--no-optional-locks", "status", "--porcelain=v2", "--untracked-files=all", "--branch"),
    )


def _is(path: Path) -> bool:
    return path.is_file()


def _untouched(place: Path) -> dict[str, bytes]:
    common = Path(git(place, "rev-parse", "--git-common-dir").strip())
    common = common if common.is_absolute() else place / common
    found: dict[str, bytes] = {}
    for name in NEVER_TOUCHED:
        paths = [common / name, *sorted((common / name).rglob("*"))]
        found |= {str(p.relative_to(common)): p.read_bytes() for p in paths if p.is_file()}
    log = common / "logs/refs/stash"
    if log.exists():
        found["logs/refs/stash"] = log.read_bytes()
    return found


def missing_objects(place: Path) -> str:
    """What HEAD, the index and everything they lead to name and is not there."""
    problems = git(place, "fsck", "--connectivity-only", "--no-dangling", "--no-reflogs")
    for line in git(place, "ls-files", "--stage").splitlines():
        mode, oid, _ = line.split()[:3]
        if mode != "160000":
            problems += git(place, "cat-file", "-e", oid)
    return problems


def remove(place: Path) -> None:
    shutil.rmtree(place)
