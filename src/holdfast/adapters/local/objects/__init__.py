"""Content-addressed storage: records in append-only packs, found through a rebuildable index."""
