"""Files outside the workspace that an agent's tool call names."""
