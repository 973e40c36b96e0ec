"""For each setting, values that it takes, as one would type them; and what a wrong name may be."""

from __future__ import annotations

from difflib import get_close_matches

EXAMPLES = {
    "include": '[".env", "*.db"]',
    "ignore": '["*.log"]',
    "capture_named_ignored": '"on" or "off"',
    "max_file_size": '"250 MB"',
    "budget": '"10 GB"',
    "total_budget": '"50 GB"',
    "lock_timeout": "30",
    "hook_lock_timeout": "2",
    "wait_for_edits": "5",
    "setuid": '"restore" or "drop"',
    "max_manual_checkpoints": "50 or 0 for no limit",
    "components": '["git"] or [] for files alone',
    "component_timeout": "20",
    "component_max_size": '"1 GB"',
    "auto_edit": '"on" or "off"',
    "auto_shell": '"on" or "off"',
    "auto_after_shell": '"on" or "off"',
    "auto_message": '"on" or "off"',
    "auto_turn_end": '"on" or "off"',
    "restore_on_failure": '"on" or "off"',
    "check_command": '["make", "test"] or [] for none',
    "check_timeout": "60",
    "defaults": '"on" or "off"',
    "key_file": '"~/keys/shop.key"',
    "auto_files": "5 or 0 for never",
    "auto_interval": "30 or 0 for never",
    "end_of_day": '"18:00" or "" for never',
    "auto_merge": '["main", "master"] or [] for never',
    "daemon": '"on" or "off"',
    "daemon_idle": "30 or 0 for never",
    "watch": '"on" or "off" or "paranoid"',
    "postgres": '["DATABASE_URL"] or ["~/.config/shop/database-url"]',
    "agent_state": '["claude-code", "~/.notes/**/*.md"]',
    "nested_repositories": '"on" or "off" or "auto"',
    "git_nested": '"on" or "off"',
    "accept_template": '"{subject}\\n\\n{reasons}"',
    "accept_timeout": "600 or 0 for no limit",
    "mirror": 'true or "holdfast-checkpoints" or "" for none',
    "mirror_refs": '"tags" or "holdfast-checkpoints"',
    "worktree_files": '"always" or "never"',
    "retention": '{tool = {age = "24 hours", most = 10}}',
}


def known_settings(key: str) -> str:
    """What may have been meant by the name of a setting that does not exist."""
    close = get_close_matches(key, EXAMPLES, 3)
    if close:
        return f"did you mean: {', '.join(close)}"
    return f"settings are: {', '.join(EXAMPLES)}"
