"""The origin of each line of a file: its checkpoint, reason, tool call and message.

    the current file, or one in a checkpoint → `blame` along the parents → the cause of the change
    between the first checkpoint with a line and the one before it (`causes`)

Guarantee: nothing is changed, no lock is waited for, and no link to the file is followed (I6).
"""

from __future__ import annotations

import errno
import stat
from dataclasses import replace

from blake3 import blake3

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.diff.line_origins import ExplainedLine, Explanation, LineOrigin, LineState
from holdfast.domain.errors import LimitReached, NotFound, Refused, UsageError
from holdfast.domain.ids import Digest, SessionId, short
from holdfast.domain.paths import basename, parent, require_safe_path, to_text, typed
from holdfast.domain.trees.entries import DirectoryEntry, FileEntry
from holdfast.engine.compare.tree_diff import IgnoredContent
from holdfast.engine.conversation.conversation import BestEffortStory
from holdfast.engine.history.references import resolve
from holdfast.engine.restore.directory_handles import NO_DIRECTORY, DirectoryHandles
from holdfast.engine.stored_objects import entry_at, read_content
from holdfast.engine.vault import Vault
from holdfast.engine.why.blame import Found, blame
from holdfast.engine.why.causes import Causes, ConcurrentCalls
from holdfast.engine.why.versions import (
    LARGEST_BYTES,
    FileVersion,
    FileVersions,
    WorkspaceStates,
    text_lines,
)
from holdfast.ports.filesystem import FILE_FLAGS

_PIECE_BYTES = 1024 * 1024
MOST_VERSIONS = 100_000
"""How many checkpoints are searched; the answer says if there are older ones."""
MOST_LINES = 20_000_000
"""How many lines of all versions are compared: some ten seconds."""


def why(
    vault: Vault,
    session_id: SessionId | None,
    path: bytes,
    *,
    line: int | None = None,
    reference: str | None = None,
    most_versions: int = MOST_VERSIONS,
    most_lines: int = MOST_LINES,
) -> Explanation:
    """For all lines or one, counted from 1; of the file in the workspace or in a checkpoint. As one
    session knows it or, with None, from the saved states of all sessions."""
    require_safe_path(path)
    states = WorkspaceStates(vault) if session_id is None else None
    if reference is None:
        at = _newest(vault, session_id) if states is None else states.newest()
        data = _read_current_file(vault, path, LARGEST_BYTES)
        IgnoredContent(vault).require_shown(path)
        newest = FileVersion(path, Digest(blake3(data).digest()))
    else:
        at = resolve(vault, session_id, reference)
        newest, data = _version_in(vault, at, path)
        IgnoredContent(vault).require_shown(path, at)
    texts = _lines_of(path, data)
    versions = FileVersions(vault, newest, texts, at, states)
    wanted = _wanted(path, line, len(texts))
    found = blame(
        newest,
        wanted,
        versions.parents,
        versions.lines,
        most_versions=most_versions,
        most_lines=most_lines,
    )
    explained = _Explained(vault, session_id, versions, found)
    lines = tuple(
        ExplainedLine(index + 1, texts[index], explained.origin(found.origins[index]))
        for index in wanted
    )
    if session_id is not None and reference is None:
        lines = _found_elsewhere(vault, path, lines, most_versions, most_lines)
    warnings = (*versions.warnings, *explained.warnings())
    of = None if newest.checkpoint is None else newest.checkpoint.id
    return Explanation(path, of, len(texts), lines, warnings)


def _found_elsewhere(
    vault: Vault,
    path: bytes,
    lines: tuple[ExplainedLine, ...],
    most_versions: int,
    most_lines: int,
) -> tuple[ExplainedLine, ...]:
    """Lines that are unsaved in this session, but saved by another one, with that session's
    explanation."""
    if all(line.origin.state is not LineState.UNSAVED for line in lines):
        return lines
    everywhere = why(vault, None, path, most_versions=most_versions, most_lines=most_lines).lines
    saved = {
        (line.number, line.text)
        for line in everywhere
        if line.origin.state is not LineState.UNSAVED
    }
    elsewhere = LineOrigin(LineState.ELSEWHERE, path)
    return tuple(
        replace(line, origin=elsewhere)
        if line.origin.state is LineState.UNSAVED and (line.number, line.text) in saved
        else line
        for line in lines
    )


def _newest(vault: Vault, session_id: SessionId | None) -> Checkpoint | None:
    session = None if session_id is None else vault.catalog.session(session_id)
    head = session.head if session else None
    return vault.catalog.checkpoint(session_id, head)


def _lines_of(path: bytes, data: bytes) -> list[bytes]:
    lines = text_lines(data)
    if lines is None:
        raise Refused(
            f"{to_text(path)!r} is a binary file and has no lines",
            hint=f"list the checkpoints that changed it: holdfast search {_search_word(path)}",
        )
    return lines


def _version_in(vault: Vault, at: Checkpoint, path: bytes) -> tuple[FileVersion, bytes]:
    entry = entry_at(vault.load_tree, at.tree, path)
    if entry is None:
        raise NotFound(
            f"{to_text(path)!r} is not in checkpoint {short(at.id)}",
            hint=f"list its files: holdfast show {short(at.id)} --files",
        )
    if not isinstance(entry, FileEntry):
        kind = "a directory" if isinstance(entry, DirectoryEntry) else "a link"
        raise Refused(f"{to_text(path)!r} is {kind}", hint="use a file")
    if entry.size > LARGEST_BYTES:
        raise _too_large(path, entry.size, LARGEST_BYTES)
    data = b"".join(read_content(vault.objects, entry))
    return FileVersion(path, entry.digest, at, entry), data


def _wanted(path: bytes, line: int | None, total: int) -> range:
    if line is None:
        return range(total)
    if isinstance(line, bool) or not isinstance(line, int) or not 1 <= line <= total:
        lines = "1 line" if total == 1 else f"{total:,} lines"
        raise UsageError(
            f"no line {line!r:.40}: {to_text(path)!r} has {lines}",
            hint=f"lines are numbered from 1 to {total}" if total else "the file is empty",
        )
    return range(line - 1, line)


def _read_current_file(vault: Vault, path: bytes, largest_bytes: int) -> bytes:
    """The file's bytes; the error says what is there instead of a file."""
    fs, name = vault.fs, repr(to_text(path))
    try:
        with vault.open_root() as root_fd, DirectoryHandles(fs, root_fd) as handles:
            fd = fs.open(basename(path), FILE_FLAGS, dir_fd=handles.open(parent(path)))
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise NotFound(
                f"{name} is not in the workspace",
                hint="for a deleted file, add a checkpoint that has it: --ref REF",
            ) from None
        if error.errno in NO_DIRECTORY:
            raise Refused(
                f"{name} is a link, or one of its parents is not a directory",
                hint="use the file itself",
            ) from None
        raise Refused(
            f"cannot read {name}: {error.strerror}", hint="check its permissions: ls -l"
        ) from None
    try:
        status = fs.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise Refused(f"{name} is {kind}", hint="use a file")
        pieces, size_bytes = [], status.st_size
        while size_bytes <= largest_bytes and (piece := fs.read(fd, _PIECE_BYTES)):
            pieces.append(piece)
            size_bytes = max(size_bytes, sum(map(len, pieces)))
    finally:
        fs.close(fd)
    if size_bytes > largest_bytes:
        raise _too_large(path, size_bytes, largest_bytes)
    return b"".join(pieces)


def _search_word(path: bytes) -> str:
    """A query that finds a path, as typed."""
    text = to_text(path)
    quoted = " " in text and '"' not in text
    return typed(f'"{text}"'.encode("utf-8", "surrogateescape") if quoted else path, "path:")


def _too_large(path: bytes, size_bytes: int, largest_bytes: int) -> LimitReached:
    return LimitReached(
        f"{to_text(path)!r} has {size_bytes:,} bytes; the limit for why is {largest_bytes:,}",
        hint=f"list the checkpoints that changed it: holdfast search {_search_word(path)}",
    )


class _Explained:
    """The origins of one file's lines, each computed once."""

    def __init__(
        self,
        vault: Vault,
        session_id: SessionId | None,
        versions: FileVersions,
        found: Found[FileVersion],
    ) -> None:
        self._vault = vault
        self._session_id = session_id
        self._versions = versions
        self._found = found
        self._story = BestEffortStory(vault)
        self._causes_of: dict[SessionId, Causes] = {}
        self._concurrent = ConcurrentCalls(vault)
        self._origins: dict[tuple[object, ...], LineOrigin] = {}

    def origin(self, version: FileVersion) -> LineOrigin:
        if version.key not in self._origins:
            self._origins[version.key] = self._origin(version)
        return self._origins[version.key]

    def warnings(self) -> list[str]:
        said = []
        if any(version.key in self._found.ended for version in self._found.origins.values()):
            said.append("some lines are older than the searched history")
        if self._story.trouble is not None:
            said.append(f"messages are missing: {self._story.trouble}")
        return said

    def _origin(self, version: FileVersion) -> LineOrigin:
        first = version.checkpoint
        if first is None:
            return LineOrigin(LineState.UNSAVED, version.path)
        if version.key in self._found.ended:
            return LineOrigin(LineState.OLDER, version.path, first)
        before = self._versions.parent_of(version)
        if before is None:
            reason = first.intent.reasoning
            return LineOrigin(LineState.INITIAL, version.path, first, reasoning=reason)
        origin = LineOrigin(LineState.WRITTEN, version.path, first, before.id)
        if self._session_id is None:
            return self._by_any_session(origin, before, first)
        explained = self._causes(first.session_id).explain(origin, before, first)
        return self._concurrent.named(explained, before, first)

    def _by_any_session(
        self, origin: LineOrigin, before: Checkpoint, first: Checkpoint
    ) -> LineOrigin:
        """The cause between two neighbouring workspace states: the call that was running, with its
        reason if certain; or all that were running; or that no agent's call was."""
        found = self._concurrent.running(origin.path, before, first)
        agents = tuple(dict.fromkeys(call.agent for call in found or ()))
        if found is None or first.kind in (Kind.MANUAL, Kind.RESTORE):  # it explains itself
            explained = self._causes(first.session_id).explain(origin, before, first)
            others = [agent for agent in agents if agent.session_id != first.session_id]
            return replace(explained, others=tuple(others if first.kind is Kind.MANUAL else ()))
        by_hand = self._concurrent.was_written_after(found, origin.path, first)
        origin = replace(origin, by_hand=by_hand)
        unsure = replace(origin, others=agents, own=False)
        if len({agent.session_id for agent in agents}) != 1:
            return unsure
        session_id = agents[0].session_id
        at = self._vault.catalog.checkpoint(session_id, found[-1].at) or before
        causes = self._causes(session_id)
        if first.session_id == session_id:
            explained = causes.explain(origin, at, first)
        else:
            explained = causes.edit_begun_at(origin, at) or origin
        return explained if explained.tool_calls else causes.asked_at(unsure, at)

    def _causes(self, session_id: SessionId) -> Causes:
        if session_id not in self._causes_of:
            self._causes_of[session_id] = Causes(self._vault, session_id, self._story)
        return self._causes_of[session_id]
