"""Why a file says what it says: for each line the checkpoint, the reason, the call, the message.

    the file now, or at a checkpoint → `blame` along the parents → what was done between the first
    checkpoint that has a line and the one before it (`causes`)

Guarantee: nothing is changed, and nobody's lock is waited for.
"""

from __future__ import annotations

from blake3 import blake3

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.entries import DirectoryEntry, FileEntry
from holdfast.domain.errors import NotFound, Refused, UsageError
from holdfast.domain.ids import Digest, SessionId, short
from holdfast.domain.line_origins import ExplainedLine, Explanation, LineOrigin, LineState
from holdfast.domain.paths import require_safe_path, to_text
from holdfast.engine.content import read_content
from holdfast.engine.listing import entry_at
from holdfast.engine.references import resolve
from holdfast.engine.vault import Vault
from holdfast.engine.why.blame import Found, blame
from holdfast.engine.why.causes import Causes
from holdfast.engine.why.concurrent import ConcurrentCalls
from holdfast.engine.why.present_file import read_present, search_word, too_large
from holdfast.engine.why.versions import LARGEST_BYTES, FileVersion, FileVersions, text_lines
from holdfast.engine.withheld import require_captured

MOST_VERSIONS = 100_000
"""Checkpoints that are looked at; what is older is said not to have been."""
MOST_LINES = 20_000_000
"""Lines of all versions that are compared: some ten seconds."""


def why(
    vault: Vault,
    session_id: SessionId,
    path: bytes,
    *,
    line: int | None = None,
    reference: str | None = None,
    most_versions: int = MOST_VERSIONS,
    most_lines: int = MOST_LINES,
) -> Explanation:
    """Of all lines, or of one, counted from 1; of the file in the workspace or in a checkpoint."""
    require_safe_path(path)
    if reference is None:
        session = vault.catalog.session(session_id)
        head = session.head if session else None
        at = vault.catalog.checkpoint(session_id, head) if head else None
        data = read_present(vault, path, LARGEST_BYTES)
        require_captured(vault, path)
        newest = FileVersion(path, Digest(blake3(data).digest()))
    else:
        at = resolve(vault, session_id, reference)
        newest, data = _version_in(vault, at, path)
    texts = _lines_of(path, data)
    versions = FileVersions(vault, newest, texts, at)
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
    warnings = (*versions.warnings, *explained.warnings())
    of = None if newest.checkpoint is None else newest.checkpoint.id
    return Explanation(path, of, len(texts), lines, warnings)


def _lines_of(path: bytes, data: bytes) -> list[bytes]:
    lines = text_lines(data)
    if lines is None:
        raise Refused(
            f"{to_text(path)!r} is binary and has no lines",
            hint=f"the checkpoints that changed it: holdfast search {search_word(path)}",
        )
    return lines


def _version_in(vault: Vault, at: Checkpoint, path: bytes) -> tuple[FileVersion, bytes]:
    entry = entry_at(vault.load_tree, at.tree, path)
    if entry is None:
        raise NotFound(
            f"{to_text(path)!r} is not in checkpoint {short(at.id)}",
            hint=f"see what there is: holdfast show {short(at.id)} --files",
        )
    if not isinstance(entry, FileEntry):
        kind = "a directory" if isinstance(entry, DirectoryEntry) else "a link"
        raise Refused(f"{to_text(path)!r} is {kind}", hint="name a file")
    if entry.size > LARGEST_BYTES:
        raise too_large(path, entry.size, LARGEST_BYTES)
    data = b"".join(read_content(vault.objects, entry))
    return FileVersion(path, entry.digest, at, entry), data


def _wanted(path: bytes, line: int | None, total: int) -> range:
    if line is None:
        return range(total)
    if isinstance(line, bool) or not isinstance(line, int) or not 1 <= line <= total:
        lines = "1 line" if total == 1 else f"{total:,} lines"
        raise UsageError(
            f"{to_text(path)!r} has {lines}; there is no line {line!r:.40}",
            hint=f"lines count from 1 to {total}" if total else "the file is empty",
        )
    return range(line - 1, line)


class _Explained:
    """The origins of one file, each made once."""

    def __init__(
        self,
        vault: Vault,
        session_id: SessionId,
        versions: FileVersions,
        found: Found[FileVersion],
    ) -> None:
        self._versions = versions
        self._found = found
        self._causes = Causes(vault, session_id)
        self._concurrent = ConcurrentCalls(vault)
        self._origins: dict[tuple[object, ...], LineOrigin] = {}

    def origin(self, version: FileVersion) -> LineOrigin:
        if version.key not in self._origins:
            self._origins[version.key] = self._origin(version)
        return self._origins[version.key]

    def warnings(self) -> list[str]:
        said = []
        if any(version.key in self._found.ended for version in self._found.origins.values()):
            said.append("some lines are older than what was looked at")
        if self._causes.told.trouble is not None:
            said.append(f"messages are missing: {self._causes.told.trouble}")
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
        explained = self._causes.explain(origin, before, first)
        return self._concurrent.named(explained, before, first)
