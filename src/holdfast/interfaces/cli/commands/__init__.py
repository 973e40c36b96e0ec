"""One file per command, imported only when that command is chosen.

Each has `configure(parser)`, which declares its options, and `run(invocation)`, which does the work
and returns the exit status. Modules that every command loads are imported at the top, all others
when the command runs. A module may also have

    ANSWERS = True          its output is the answer to a question, which --quiet does not hide
    AGENT_WARNING = False   no warning after it about agents that are not protected
    ACTIONS                 the first words that it takes, each with what it does, for completion
"""
