"""The routes, one module per topic; each lists its own in `ROUTES`."""
