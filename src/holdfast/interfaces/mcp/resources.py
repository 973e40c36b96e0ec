"""Resources and prompts, which clients use without calling a tool: checkpoints, differences and the
timeline, and prompts that a user can give to an agent.

Notices for the agent wait for its next call, because the reader of a resource may not be the agent.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError

from holdfast.interfaces.mcp.tools import ServedTools
from holdfast.interfaces.tools.handlers import ToolHandlers, ToolResult
from holdfast.interfaces.tools.wording import reason_line

_JSON = "application/json"
_TEXT = "text/plain"
_NOW = "workspace"
_TIMELINE = "holdfast://timeline"
_PAGE = 100


def add_resources(server: MCPServer[Any], tools: ServedTools) -> None:
    async def call(name: str, **arguments: Any) -> ToolResult:
        return _successful(await tools.call(name, arguments, notices=False))

    async def read_json(name: str, **arguments: Any) -> str:
        data: Any = (await call(name, **arguments)).data
        return json.dumps(asdict(data), ensure_ascii=False)

    @server.resource(
        "holdfast://checkpoints",
        name="checkpoints",
        title="Checkpoints",
        description="The newest checkpoints of the session, with their reasons.",
        mime_type=_JSON,
    )
    async def checkpoints() -> str:
        return await read_json("checkpoint_list", limit=100)

    async def read_page(before: str | None) -> str:
        answer = await tools.run(
            "timeline",
            lambda handlers: (timeline_page(handlers, before), None),
            empty=_empty_timeline,
        )
        return _successful(answer).output

    @server.resource(
        _TIMELINE,
        name="timeline",
        title="Timeline",
        description="Everything that happened in the session, newest first: checkpoints, restores, "
        "approvals, messages, notes, edits and attempts. `next` is the address of the next page.",
        mime_type=_JSON,
    )
    async def timeline() -> str:
        return await read_page(None)

    @server.resource(
        f"{_TIMELINE}/{{page}}",
        name="timeline_page",
        title="Timeline, older",
        description="The next page of the timeline: the `next` of the previous page.",
        mime_type=_JSON,
    )
    async def older(page: str) -> str:
        return await read_page(page)

    @server.resource(
        "holdfast://checkpoints/{ref}",
        name="checkpoint",
        title="One checkpoint",
        description="Everything about a checkpoint: an id, a name, HEAD, initial.",
        mime_type=_JSON,
    )
    async def checkpoint(ref: str) -> str:
        return await read_json("checkpoint_show", checkpoint_id=ref, files=True, limit=1000)

    @server.resource(
        "holdfast://diff/{from_ref}/{to_ref}",
        name="diff",
        title="Difference",
        description="The changed lines between two checkpoints, or with `workspace` as the second "
        "between a checkpoint and the workspace as it is now.",
        mime_type=_TEXT,
    )
    async def diff(from_ref: str, to_ref: str) -> str:
        new = None if to_ref == _NOW else to_ref
        answer = await call(
            "checkpoint_diff", from_checkpoint=from_ref, to_checkpoint=new, content=True
        )
        return answer.output


def timeline_page(handlers: ToolHandlers, page: str | None) -> ToolResult:
    """A page of the timeline as JSON."""
    from holdfast.api.views.timeline import timeline_view

    before = None
    if page is not None:
        try:
            padded = page.encode() + b"=" * (-len(page) % 4)
            before = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
        except ValueError:
            before = "?"  # answered like any other invalid cursor
    found = timeline_view(handlers.session.timeline(_PAGE, before=before))
    found["warnings"] = [reason_line(warning) for warning in found["warnings"]]
    if found["next"] is not None:
        place = base64.urlsafe_b64encode(found["next"].encode()).decode().rstrip("=")
        found["next"] = f"{_TIMELINE}/{place}"
    return ToolResult(None, True, json.dumps(found))


def _empty_timeline(workspace: Path, session_id: str) -> ToolResult:
    from holdfast.api.views.timeline import timeline_view
    from holdfast.domain.timeline.timeline import Timeline

    return ToolResult(None, True, json.dumps(timeline_view(Timeline(()))))


def _successful(answer: ToolResult) -> ToolResult:
    if not answer.success:
        raise ResourceError(answer.output)
    return answer


def add_prompts(server: MCPServer[Any]) -> None:
    @server.prompt(
        name="protect_risky_change",
        title="Protect a risky change",
        description="Work on something risky with a way back at every step.",
    )
    def protect_risky_change(task: str) -> str:
        return (
            f"Do this: {task}\n\n"
            "Protect the work while you do it. Call checkpoint_create before the first change, "
            "with the reason and a name, and again after each step that works. When a step goes "
            "wrong, do not repair it by hand: look at checkpoint_diff, then restore the last good "
            "checkpoint with checkpoint_restore and try another way. At the end, tell me which "
            "checkpoints you made and how to return to each."
        )

    @server.prompt(
        name="recover_work",
        title="Recover work",
        description="Something went wrong: find the last good state and go back to it.",
    )
    def recover_work(problem: str) -> str:
        return (
            f"Something went wrong in this workspace: {problem}\n\n"
            "Find the newest checkpoint from before it: look through checkpoint_list and "
            "checkpoint_history, and compare candidates with checkpoint_diff. Tell me which "
            "checkpoint you would restore and what would change, as checkpoint_restore previews "
            "it. Restore only after I have agreed. checkpoint_undo undoes a restore."
        )

    @server.prompt(
        name="review_session",
        title="Review the session",
        description="Summarise what was done in this session, step by step, and why.",
    )
    def review_session() -> str:
        return (
            "Summarise this session for me. Use checkpoint_history for the steps and their "
            "reasons and checkpoint_diff from initial for the result. Name the steps with low "
            "confidence and the paths that checkpoints leave out, and say what I should look at "
            "before I approve the work."
        )
