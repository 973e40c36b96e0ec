"""Serialisation: the only place where a checkpoint, a plan or a session becomes a dictionary.

Command-line JSON, MCP answers and HTTP answers come from these typed dictionaries, one module for
each topic. Paths that are not UTF-8 become text with surrogate escapes: `os.fsencode` of that text
gives the bytes back. Times are ISO 8601 in UTC.

The modules do without `from __future__ import annotations`: annotations of typed dictionaries are
types here, not texts. So nothing is compiled when a command loads them, and schemas can be made.
"""
