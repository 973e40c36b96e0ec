"""Ways of working with checkpoints that a person can hand to an agent."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import MCPServer


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
            "it. Restore only after I have agreed. checkpoint_undo takes a restore back."
        )

    @server.prompt(
        name="review_session",
        title="Review the session",
        description="Summarise what was done in this session, step by step, and why.",
    )
    def review_session() -> str:
        return (
            "Summarise this session for me. Use checkpoint_history for the steps and their reasons "
            "and checkpoint_diff from initial for the result. Name the steps with low confidence "
            "and whatever was left out of checkpoints, and say what I should look at before I "
            "approve the work."
        )
