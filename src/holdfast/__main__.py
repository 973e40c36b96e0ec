"""`python -m holdfast` is the command line."""

from __future__ import annotations

from holdfast.interfaces.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
