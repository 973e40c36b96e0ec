"""What happens without a person: agent events, triggers, watched workspaces, merges."""
