"""The server of the Model Context Protocol: the tools of an agent over stdio or HTTP."""
