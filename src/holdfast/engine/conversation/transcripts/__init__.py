"""Reads what agents write down of a conversation: Claude Code's sessions and Codex's rollouts."""
