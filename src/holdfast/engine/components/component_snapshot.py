"""The components of one save. If there are only files, this costs next to nothing."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:  # not imported by a save of files alone
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.component_states import ComponentState
    from holdfast.domain.ids import CheckpointId, Digest
    from holdfast.engine.scan.scanner import Scan
    from holdfast.engine.vault import Vault
    from holdfast.ports.component import Intended


class CapturedComponents(NamedTuple):
    """The manifest, if there is one, and each component's problem."""

    manifest: Digest | None = None
    states: tuple[ComponentState, ...] = ()

    @property
    def troubles(self) -> tuple[str, ...]:
        return tuple(text for state in self.states for text in state.troubles)


NOTHING = CapturedComponents()


def capture_components(
    vault: Vault,
    checkpoint: CheckpointId,
    before: Checkpoint | None,
    *,
    intended: dict[str, Intended] | None = None,
    only: Container[str] | None = None,
    beyond_budget: bool = False,
    thorough: bool = True,
    recorded: bool = False,
    scan: Scan | None = None,
) -> CapturedComponents:
    """Called with the store's lock held. `before` is the previous HEAD, `intended` what a restore
    is about to do, and `scan` the scan of the files that are saved with it. With `only`, other
    components count as unchanged. Automatic checkpoints are not `thorough`. Components that are
    never restored are captured only if `recorded`."""
    if not vault.components.any_for(vault.workspace, recorded=recorded):
        return NOTHING
    from holdfast.engine.components.capture import capture

    return capture(
        vault,
        checkpoint,
        before,
        intended or {},
        only=only,
        beyond_budget=beyond_budget,
        thorough=thorough,
        recorded=recorded,
        scan=scan,
    )


def same_components(vault: Vault, earlier: Checkpoint, captured: CapturedComponents) -> bool:
    """Whether a checkpoint has exactly these components. Record-only components count only if this
    capture has them."""
    if earlier.components == captured.manifest:
        return True
    if earlier.components is None:
        return False
    from holdfast.engine.components.recorded import without_recorded

    return without_recorded(vault, earlier, captured.states) == captured.manifest
