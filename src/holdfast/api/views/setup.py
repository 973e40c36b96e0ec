"""The set-up of a workspace as data: its store and keys, agents, servers, shells, the demo."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from holdfast.api.views.checkpoints import CheckpointView, checkpoint_view

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.domain.outcomes import SaveOutcome
    from holdfast.ports.store import KeySlot


class StoreView(TypedDict):
    """A workspace and its store; `created` if there was none before."""

    workspace: str
    store: str
    created: bool
    encrypted: bool


class KeyView(TypedDict):
    """A key of an encrypted store."""

    id: str
    kind: str
    used: bool


class KeysView(TypedDict):
    """All keys of a store."""

    keys: list[KeyView]


class FileChangeView(TypedDict):
    """A settings file of an agent."""

    path: str
    change: str
    diff: str


class WithheldView(TypedDict):
    """Why an agent does not run its hooks yet, and what to do."""

    reason: str
    cure: str


class InstallationView(TypedDict):
    """The hooks of an agent, installed or removed; `verified` if a test event ran."""

    agent: str
    scope: str
    files: list[FileChangeView]
    dry_run: bool
    verified: bool | None
    test_event_ms: int | None
    withheld: WithheldView | None
    notes: list[str]


class PluginView(TypedDict):
    """The plug-in of an agent and its files."""

    agent: str
    plugin: str
    files: list[str]
    dry_run: bool


class WebServerView(TypedDict):
    """The address of the web server, and the token that programs send."""

    url: str
    token: str


class WebLinkView(TypedDict):
    """The address of the web server, and the link that signs a browser in once."""

    url: str
    link: str


class McpServerView(TypedDict):
    """Where an MCP server listens, and the file that holds its token."""

    url: str
    token_file: str | None


class DaemonView(TypedDict):
    """A daemon that listens."""

    socket: str
    pid: int


class WatchedView(TypedDict):
    """The checkpoints that `watch` made."""

    workspace: str
    session_id: str | None
    checkpoints: list[CheckpointView]


class CompletionScriptView(TypedDict):
    """The completion script of a shell."""

    shell: str
    script: str


class CompletionInstallView(TypedDict):
    """The completion file of a shell; `changed` if it was not up to date."""

    shell: str
    file: str
    changed: bool
    dry_run: bool


class CandidateView(TypedDict):
    """A completion candidate for the shell."""

    value: str
    description: str


class DemoChangeView(TypedDict):
    """A path that differs: `change` is added, removed or modified."""

    path: str
    change: str


class DemoStepView(TypedDict, total=False):
    """A step of the demo. An undo or redo has a hash of the project and of the copy."""

    title: str
    commands: list[str]
    elapsed_ms: float | None
    result: str
    verified: bool | None
    changes: list[DemoChangeView]
    tree_hash: str
    expected_tree_hash: str


class DemoView(TypedDict):
    """The demo; `ok` if every comparison held."""

    ok: bool
    steps: list[DemoStepView]
    elapsed_ms: float


def keys_view(slots: "Iterable[KeySlot]", used: str | None) -> KeysView:
    """`used` is the id of the key that opened the store."""
    return {"keys": [{"id": one.id, "kind": one.kind, "used": one.id == used} for one in slots]}


def watched_view(
    workspace: "Path", session_id: str | None, made: "Iterable[SaveOutcome]"
) -> WatchedView:
    return {
        "workspace": str(workspace),
        "session_id": session_id,
        "checkpoints": [checkpoint_view(each.checkpoint) for each in made],
    }
