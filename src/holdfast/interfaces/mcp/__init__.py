"""The Model Context Protocol (MCP) server: transports and protocol. `interfaces/tools/` defines the
tools."""
