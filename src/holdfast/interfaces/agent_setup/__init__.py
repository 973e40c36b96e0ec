"""Installing hooks into the settings of agents and removing them, as each module of
`interfaces/agents/` describes."""
