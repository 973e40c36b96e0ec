"""One file per command, imported only when that command is chosen.

Each has `configure(parser)`, which declares its options, and `run(invocation)`, which does the work
and returns the exit status. Modules that every command loads are imported at the top, all others
when the command runs. A module may also have

    ANSWERS = True          its output answers a question, so --quiet does not hide it
    AGENT_WARNING = False   it is not followed by a warning about unprotected agents
    ACTIONS                 its first words, each with a description, for completion
"""
