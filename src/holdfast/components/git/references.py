"""References of a repository, read as files: HEAD, branches, the stash.

Packed references are searched, not parsed: a repository may have a hundred thousand. A repository
with another ref format is recognised, and never treated as empty.

All are read in one pass: packed references by one search through the file, then loose ones, which
override them. An encoded list has one line per reference: its value, a space, its name. The value
is a commit, the tag object of an annotated tag, `ref:NAME` for a symbolic branch, or `-` for one
that does not exist. A reference that git would not have written is left out, as git ignores it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from holdfast.components.git.repository import Repository, TooLarge, read_small, read_whole
from holdfast.domain.paths import to_text
from holdfast.ports.component import ComponentProblem
from holdfast.values.classes import NamedTuple, dataclass

OID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_REF_BYTES = 8192
_CONFIG_BYTES = 4 << 20
_STORAGE = re.compile(rb"""(?im)(?:^|\])[\t ]*refstorage[\t ]*=[\t ]*"?([^\s"#;]+)""")
_DEEPEST = 5
_FORBIDDEN = re.compile(rb"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|\Z)|\.(?:/|\Z)")


LEAVE_GIT_OUT = """holdfast config set components '["agents", "postgres", "external"]'"""


class OtherReferences(ComponentProblem):
    """The repository does not store its references as files."""

    def __init__(self, how: str) -> None:
        super().__init__(
            f"the repository's ref format {how} is not supported: files are saved, git state is "
            "not; convert it (git refs migrate --ref-format=files) or turn the git component off: "
            f"{LEAVE_GIT_OUT}"
        )


class BrokenReference(Exception):
    """HEAD or a branch has content that git would not have written."""


@dataclass(frozen=True, slots=True)
class Head:
    """HEAD: its branch and commit. `ref` is None if it is detached, `commit` if the branch is
    unborn; `holder` is the reference with the commit, if the branch is symbolic."""

    ref: bytes | None
    commit: str | None
    holder: bytes | None = None


def is_branch_name(ref: bytes) -> bool:
    """Whether this is a valid user branch, by the rules of `git check-ref-format`."""
    return _is_name(ref, b"refs/heads/")


def is_tag_name(ref: bytes) -> bool:
    """The same for a tag."""
    return _is_name(ref, b"refs/tags/")


def _is_name(ref: bytes, prefix: bytes) -> bool:
    return (
        ref.startswith(prefix)
        and len(ref) > len(prefix)
        and len(ref) < 1000
        and not ref.endswith((b"/", b"."))
        and b"/-" not in ref[: len(prefix) + 1]
        and _FORBIDDEN.search(ref) is None
    )


def require_file_references(repository: Repository) -> None:
    """`OtherReferences` if the config says that they are not files."""
    try:
        config = read_small(repository.shared(b"config"), _CONFIG_BYTES) or b""
    except TooLarge:
        raise BrokenReference("its config file is too large") from None
    for kind in _STORAGE.findall(config):
        if kind.lower() != b"files":
            raise OtherReferences("tables" if kind.lower() == b"reftable" else _quoted(kind))


def read_head(repository: Repository) -> Head:
    text = _read(repository.own(b"HEAD"))
    if text is None:
        raise BrokenReference("HEAD is missing")
    if os.path.islink(repository.own(b"HEAD")):
        text = b"ref: " + os.readlink(repository.own(b"HEAD"))
    if not text.startswith(b"ref:"):
        return Head(None, _oid(text, b"HEAD"))
    ref = text[4:].strip()
    if ref == b"refs/heads/.invalid":
        raise OtherReferences("tables")
    if not ref.startswith(b"refs/") or _FORBIDDEN.search(ref):
        raise BrokenReference(f"HEAD names {_quoted(ref)}, which is no branch")
    holder, commit = _resolve(repository, ref)
    return Head(ref, commit, holder)


def read_reference(repository: Repository, ref: bytes) -> str | None:
    """The value of a reference, or None."""
    return _resolve(repository, ref)[1]


def _resolve(repository: Repository, ref: bytes) -> tuple[bytes, str | None]:
    for _ in range(_DEEPEST):
        text = _read(_place(repository, ref))
        if text is None:
            return ref, _packed(repository, ref)
        if not text.startswith(b"ref:"):
            return ref, _oid(text, ref)
        ref = text[4:].strip()
        if _FORBIDDEN.search(ref):
            break
    raise BrokenReference(f"{_quoted(ref)} points to nothing")


def _place(repository: Repository, ref: bytes) -> bytes:
    """Some references belong to one worktree, others are shared."""
    own = ref.startswith((b"refs/bisect/", b"refs/worktree/", b"refs/rewritten/"))
    return repository.own(ref) if own else repository.shared(ref)


def _packed(repository: Repository, ref: bytes) -> str | None:
    packed = read_whole(repository.shared(b"packed-refs"))
    end = packed.find(b" " + ref + b"\n")
    if end < 0:
        return None
    return _oid(packed[packed.rfind(b"\n", 0, end) + 1 : end], ref)


def packed_under(repository: Repository, prefix: bytes) -> list[bytes]:
    """Packed references with this prefix."""
    packed = read_whole(repository.shared(b"packed-refs"))
    return re.findall(rb"^[0-9a-f]+ (" + re.escape(prefix) + rb"[^\n]+)$", packed, re.MULTILINE)


def _read(path: bytes) -> bytes | None:
    try:
        text = read_small(path, _REF_BYTES)
    except TooLarge:
        raise BrokenReference(f"{os.fsdecode(path)} is too large") from None
    return None if text is None else text.rstrip(b"\n")


def _oid(text: bytes, ref: bytes) -> str:
    text = text.strip()
    if not OID.match(text):
        raise BrokenReference(f"{_quoted(ref)} contains no commit id: {_quoted(text)}")
    return text.decode()


def _quoted(name: bytes) -> str:
    """On one line and short, whatever a damaged file contains."""
    return repr(to_text(name))[:80]


HEADS, TAGS, STASH_REF = b"refs/heads/", b"refs/tags/", b"refs/stash"
LINK = "ref:"
_PACKED = re.compile(rb"^([0-9a-f]{40,64}) (refs/(?:heads|tags)/[^\n]+)$", re.MULTILINE)
_FEW = 200
_MOST_LISTED = 1_000_000


class AllReferences(NamedTuple):
    """Full names with their values."""

    branches: dict[bytes, str]
    tags: dict[bytes, str]

    @property
    def both(self) -> dict[bytes, str]:
        return {**self.branches, **self.tags}


def read_all(repository: Repository) -> AllReferences:
    """Starts no process."""
    packed = _PACKED.findall(read_whole(repository.shared(b"packed-refs")))
    found = {ref: oid.decode() for oid, ref in packed if OID.match(oid)}
    for directory, names in _loose(repository):
        for name in names:
            value = _value(repository.shared(directory + name))
            if value is not None:
                found[directory + name] = value
    rows = sorted((ref, oid) for ref, oid in found.items() if ref not in repository.ours)
    return AllReferences(
        {ref: oid for ref, oid in rows if is_branch_name(ref)},
        {ref: oid for ref, oid in rows if is_tag_name(ref)},
    )


def loose_stamps(repository: Repository) -> Iterator[tuple[bytes, tuple[os.stat_result, ...]]]:
    """Stat results that change whenever a loose branch or tag does, in a stable order. Git replaces
    such a file and never edits it. So if there are many, their names and the times of their
    directory are enough."""
    for directory, names in _loose(repository):
        looked_at = names if len(names) <= _FEW else [b""]
        for name in looked_at:
            try:
                yield directory + name, (os.lstat(repository.shared(directory + name)),)
            except OSError:
                yield directory + name, ()  # just removed by git
        if looked_at is not names:
            yield b"\n".join(names), ()


def _loose(repository: Repository) -> Iterator[tuple[bytes, list[bytes]]]:
    """Each directory of loose references, with a slash, and its file names."""
    pending = [HEADS, TAGS]
    while pending:
        directory = pending.pop()
        names = []
        try:
            with os.scandir(repository.shared(directory)) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(directory + entry.name + b"/")
                    elif directory + entry.name not in repository.ours:
                        names.append(entry.name)
        except OSError:
            continue
        pending.sort()
        yield directory, sorted(names)


def _value(path: bytes) -> str | None:
    try:
        text = (read_small(path, _REF_BYTES) or b"").strip()
    except TooLarge:
        return None
    if text.startswith(b"ref:"):
        target = text[4:].strip()
        return LINK + target.decode() if is_branch_name(target) and target.isascii() else None
    return text.decode() if OID.match(text) else None


def encode_list(references: Mapping[bytes, str | None]) -> bytes:
    rows = sorted(references.items())
    return b"".join(b"%b %b\n" % ((value or "-").encode(), ref) for ref, value in rows)


def decode_list(data: bytes) -> dict[bytes, str | None]:
    """`ValueError` unless a capture could have made it."""
    lines = data.split(b"\n")
    if lines.pop() or len(lines) > _MOST_LISTED:
        raise ValueError("a list of references is truncated")
    return dict(map(_row, lines))


def _row(line: bytes) -> tuple[bytes, str | None]:
    value, _, ref = line.partition(b" ")
    if not (is_branch_name(ref) or is_tag_name(ref) or ref == STASH_REF):
        raise ValueError(f"{ref!r:.80} is neither a branch nor a tag")
    if value == b"-":
        return ref, None
    link = value.removeprefix(LINK.encode())
    if not OID.match(value) and not (link != value and is_branch_name(link)):
        raise ValueError(f"{value!r:.80} is not an object id")
    return ref, value.decode("ascii")
