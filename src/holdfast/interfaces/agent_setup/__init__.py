"""Installs hooks into agent settings and removes them, as `interfaces/agents/` describes them."""
