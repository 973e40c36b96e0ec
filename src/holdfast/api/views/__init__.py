"""Serialisation: the only place where a checkpoint, a plan or a session becomes a dictionary.

Command-line JSON and HTTP answers come from these typed dictionaries, one module per topic. Answers
of agent tools are value types beside their tools, and share `tool_values`. Paths that are not UTF-8
become text with surrogate escapes, and `os.fsencode` returns their bytes. Times are ISO 8601 in
UTC.

The modules do not use `from __future__ import annotations`. Annotations of typed dictionaries must
be types, not strings, so that loading them compiles nothing and schemas can be generated.
"""
