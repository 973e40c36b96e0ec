"""Definitions and handlers of the agent tools, shared by MCP and `holdfast.tools`."""
