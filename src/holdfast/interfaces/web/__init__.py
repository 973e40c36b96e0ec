"""The HTTP server: the API, live events, metrics and the web page, over `holdfast.api`."""
