"""One file a verb, imported only when that verb is chosen.

Each has `configure(parser)`, which declares its options, and `run(invocation)`, which does the work
and returns the exit status. What a verb needs besides is imported when it runs.
"""
