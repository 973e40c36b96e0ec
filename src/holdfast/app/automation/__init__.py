"""What runs unattended: agent events, triggers, watched workspaces, merges."""
