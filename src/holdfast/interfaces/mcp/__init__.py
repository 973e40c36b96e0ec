"""The Model Context Protocol (MCP) server: transports and protocol. The tools it serves are defined
in `interfaces/tools/`."""
