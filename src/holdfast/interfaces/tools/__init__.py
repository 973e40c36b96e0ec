"""Agent tool definitions and handlers, shared by MCP and `holdfast.tools`."""
