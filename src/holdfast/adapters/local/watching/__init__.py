"""Adapters of the watcher port: inotify on Linux, watchfiles elsewhere, or one that reports why it
does not watch."""
