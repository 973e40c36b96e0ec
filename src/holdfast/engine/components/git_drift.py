"""How git differs from a checkpoint whose files are restored without it (GT-7).

For a preview, the future content of files is read from the store, up to a limit. Content beyond it
counts as changed. After the restore, the files themselves are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import ComponentState
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.git.drift import GitDrift, PresentGit
from holdfast.domain.outcomes import RestoreOutcome
from holdfast.domain.restore.plan import Step
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.engine.components.contents import changed_since, seen_directories
from holdfast.engine.components.guard import Refusal, guarded
from holdfast.engine.components.manifests import read_states, state_of
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.stored_objects import read_content
from holdfast.engine.vault import Vault
from holdfast.ports.component import (
    CaptureRequest,
    SeenDirectory,
    VersionedComponent,
    nothing_seen,
    unknown_changes,
)

_LARGEST_READ = 32 << 20
_MOST_READ = 256 << 20
_LEAVES_HEAD = "refs"
After = Mapping[bytes, Callable[[], bytes | None]]


def git_drift(
    vault: Vault,
    target: Checkpoint,
    chosen: Sequence[tuple[str, str]] = (),
    steps: Sequence[Step] = (),
) -> GitDrift | None:
    """None if HEAD is unchanged, or is restored with the files. `steps` are the steps still to do.
    Problems with git are reported elsewhere."""
    if target.components is None:
        return None
    modes = {name: mode.partition(":")[0] for name, mode in chosen}
    try:
        states = {state.name: state for state in read_states(vault.objects, target)}
    except StoreDamaged:
        return None
    after = _contents(vault, steps)
    for component in vault.components.named(states):
        state = states[component.name]
        if state.failure is not None:
            continue
        if modes.get(component.name, _LEAVES_HEAD) != _LEAVES_HEAD:
            continue
        if isinstance(component, VersionedComponent):
            timeout_s = vault.settings.component_timeout
            call = partial(component.drift, vault.workspace, state, after, timeout_s=timeout_s)
            try:
                return guarded(call, timeout_s=timeout_s)
            except Refusal:
                return None
    return None


def present_git(
    vault: Vault, *, scan: Scan | None = None, restored: RestoreOutcome | None = None
) -> PresentGit | None:
    """Git's current state; None without a repository, or if git does not answer in time. Results of
    a scan at the same moment are reused. Directly after a restore, so is the safety checkpoint's
    state of files that were not restored."""
    found = vault.components.applying(vault.workspace)
    component = next((one for one in found if isinstance(one, VersionedComponent)), None)
    if component is None:
        return None
    seen: Callable[[], Iterable[SeenDirectory]] = nothing_seen
    changed: Callable[[], Sequence[bytes] | None] = unknown_changes
    known = next(iter(vault.catalog.history(None, limit=1, records=True)), None)
    if scan is not None:
        seen = partial(seen_directories, scan.root)
        changed = partial(changed_since, vault, known, scan)
    elif restored is not None and restored.recorded:
        known = vault.catalog.checkpoint(None, restored.safety)
        changed = partial(list, [step.path for step in restored.steps])
    request = CaptureRequest(
        workspace=vault.workspace,
        owner=vault.workspace_id,
        checkpoint=None,
        previous=_known_state(vault, known, component.name),
        now_ns=vault.clock.now_ns(),
        timeout_s=vault.settings.component_timeout,
        changed=changed,
        seen=seen,
    )
    try:
        return guarded(partial(component.place, request), timeout_s=request.timeout_s)
    except Refusal:
        return None


def _known_state(vault: Vault, known: Checkpoint | None, name: str) -> ComponentState | None:
    if known is None:
        return None
    try:
        state = state_of(vault.objects, known, name)
    except StoreDamaged:
        return None  # the current state can be described anyway
    return None if state is None or state.failure is not None else state


def _contents(vault: Vault, steps: Sequence[Step]) -> After:
    """The result of the steps at each path that is no directory, without the largest files."""
    left, after = _MOST_READ, {}
    for step in steps:
        if isinstance(step.after or step.before, DirectoryEntry):
            continue
        left -= step.size_bytes
        readable = step.size_bytes <= _LARGEST_READ and left >= 0
        after[step.path] = partial(_content, vault, step.after if readable else None)
    return after


def _content(vault: Vault, entry: Entry | None) -> bytes | None:
    if isinstance(entry, SymlinkEntry):
        return entry.target
    if not isinstance(entry, FileEntry):
        return None
    return b"".join(read_content(vault.objects, entry))
