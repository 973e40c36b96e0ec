"""Findings about a store, and a repair as data: the steps that repair the store.

Pure. Every step says what it does, why, and what is lost. Steps delete nothing; they quarantine
files in the store. First come steps that make the store readable, then content, then the
checkpoints that refer to it.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.ids import CheckpointId, Digest, short
from holdfast.domain.paths import to_text
from holdfast.domain.wording import count_words
from holdfast.values.classes import dataclass

ALL_COMPONENTS = "components"
"""Used instead of names if it is unknown which components there were."""


class Gravity(StrEnum):
    FINE = "ok"
    NOTE = "note"
    """Nothing is wrong, but something could be set up."""

    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Symptom:
    """The result of one check; `cure` is the fix."""

    subject: str
    gravity: Gravity
    finding: str
    cure: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the store that breaks an invariant."""

    invariant: str
    subject: str
    problem: str


class RepairType(StrEnum):
    FINISH = "finish"
    DESCRIBE = "describe"
    REBUILD_CATALOG = "rebuild-catalog"
    REBUILD_INDEX = "rebuild-index"
    REBUILD_STORY = "rebuild-story"
    HEAL = "heal"
    MEND_PACK = "mend-pack"
    MARK_DAMAGED = "mark-damaged"
    DROP_CHECKPOINT = "drop-checkpoint"
    RECOVER_STATE = "recover-state"
    SET_ASIDE_JOURNAL = "set-aside-journal"


@dataclass(frozen=True, slots=True)
class CatalogLosses:
    """Why the catalog must be rebuilt, and which parts of it are unreadable. `end_is_unknown`: the
    newest entries may be lost too."""

    problem: str
    checkpoints: tuple[CheckpointId, ...] = ()
    operations: int = 0
    settings: bool = False
    end_is_unknown: bool = False

    @property
    def history_is_incomplete(self) -> bool:
        return bool(self.checkpoints or self.operations or self.end_is_unknown)


@dataclass(frozen=True, slots=True)
class StoryLosses:
    """Why the story must be rebuilt, and how many messages are known to be lost."""

    problem: str
    messages: int = 0


@dataclass(frozen=True, slots=True)
class DamagedState:
    """A checkpoint that lost some paths or component data; with `is_gone`, everything."""

    id: CheckpointId
    paths: tuple[bytes, ...] = ()
    components: tuple[str, ...] = ()
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class UnnamedState:
    """A complete tree in the store that no checkpoint refers to."""

    tree: Digest
    files: int


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything wrong with a store; empty for a sound one."""

    unfinished_repair: bool = False
    description: str | None = None
    catalog: CatalogLosses | None = None
    index: str | None = None
    packs: tuple[tuple[int, str], ...] = ()
    lost_objects: int = 0
    healable_objects: int = 0
    damaged: tuple[DamagedState, ...] = ()
    unnamed: tuple[UnnamedState, ...] = ()
    journal: str | None = None
    story: StoryLosses | None = None


@dataclass(frozen=True, slots=True)
class RepairStep:
    """One step; `lost` names what it cannot recover."""

    type: RepairType
    subject: str
    why: str
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RepairPlan:
    steps: tuple[RepairStep, ...]

    @property
    def lost(self) -> tuple[str, ...]:
        return tuple(loss for step in self.steps for loss in step.lost)


def plan_repair(found: Findings) -> RepairPlan:
    steps: list[RepairStep] = []
    if found.unfinished_repair:
        why = "an earlier repair was interrupted; it is finished first"
        steps.append(RepairStep(RepairType.FINISH, "repair", why))
    if found.description is not None:
        steps.append(RepairStep(RepairType.DESCRIBE, "store.json", found.description))
    if found.catalog is not None:
        steps.append(_rebuild_catalog(found.catalog))
    if found.index is not None:
        steps.append(RepairStep(RepairType.REBUILD_INDEX, "index.db", found.index))
    if found.story is not None:
        steps.append(_rebuild_story(found.story))
    if found.healable_objects:
        what = f"{found.healable_objects} of {found.lost_objects} lost objects"
        why = "the workspace still has the same bytes; they are stored again"
        steps.append(RepairStep(RepairType.HEAL, what, why))
    for number, why in found.packs:
        steps.append(RepairStep(RepairType.MEND_PACK, f"pack {number}", why))
    steps += [_mark(state) for state in found.damaged]
    for state in found.unnamed:
        why = "no checkpoint refers to this state; it gets one in the session 'recovered'"
        subject = f"a state of {count_words(state.files, 'file')}"
        steps.append(RepairStep(RepairType.RECOVER_STATE, subject, why))
    if found.journal is not None:
        lost = ("the automatic recovery of an interrupted restore: check the workspace",)
        steps.append(RepairStep(RepairType.SET_ASIDE_JOURNAL, "journal", found.journal, lost))
    return RepairPlan(tuple(steps))


def _rebuild_catalog(losses: CatalogLosses) -> RepairStep:
    lost = [
        f"conversation data of checkpoint {short(identifier)}" for identifier in losses.checkpoints
    ]
    if losses.operations:
        lost.append(f"{count_words(losses.operations, 'entry', 'entries')} of the operation log")
    if losses.settings:
        lost.append("the workspace settings: they are back to their defaults")
    if losses.end_is_unknown:
        lost.append("possibly the newest changes: the record of them is damaged")
    return RepairStep(RepairType.REBUILD_CATALOG, "catalog.db", losses.problem, tuple(lost))


def _rebuild_story(losses: StoryLosses) -> RepairStep:
    lost = [f"{count_words(losses.messages, 'conversation message')}"] if losses.messages else []
    lost.append("messages, notes and edits that can no longer be read; no checkpoint is lost")
    return RepairStep(RepairType.REBUILD_STORY, "story.db", losses.problem, tuple(lost))


def _mark(state: DamagedState) -> RepairStep:
    subject = f"checkpoint {short(state.id)}"
    if state.is_gone:
        lost = (f"everything in {subject}",)
        why = "its root directory can no longer be read"
        return RepairStep(RepairType.DROP_CHECKPOINT, subject, why, lost)
    named = [f"{to_text(path) or 'the list of skipped paths'} of {subject}" for path in state.paths]
    named += [f"{_component_data(name)} of {subject}" for name in state.components]
    why = "some of it can no longer be read; the rest can be restored (--best-effort)"
    if not state.paths:
        why = "its files are complete; other saved data can no longer be read"
    return RepairStep(RepairType.MARK_DAMAGED, subject, why, tuple(named))


def _component_data(name: str) -> str:
    if name == ALL_COMPONENTS:
        return "everything besides files (such as git state, databases and tool versions)"
    return f"the saved data of {name}"
