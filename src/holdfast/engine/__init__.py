"""Use cases: save, restore, undo, compare, check — written against ports, free of adapters."""
