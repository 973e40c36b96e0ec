"""The git state of submodules and of other repositories inside the workspace."""
