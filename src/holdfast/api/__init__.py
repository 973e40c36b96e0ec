"""The door to a workspace for interfaces and library users."""
