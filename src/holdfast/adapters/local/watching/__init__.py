"""Adapters of the watcher port: inotify on Linux, and an honest nothing elsewhere."""
