"""A user who walks through a session at a terminal: presses keys, sees pictures."""

from __future__ import annotations

import re

from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen

_STYLES = re.compile(r"\x1b\[[0-9;]*m")


class Viewer:
    """Reads whole pictures, and forgets each when the next one is asked for."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen

    def see(self, *words: str) -> list[str]:
        """The lines of the next picture that has all of these words."""
        while True:
            self.screen.read_until("\x1b[?2026h\x1b[H")
            picture = self.screen.read_until("\x1b[?2026l").removesuffix("\x1b[?2026l")
            lines = [_STYLES.sub("", line).rstrip("\r") for line in picture.split("\n")]
            lines = [line.replace("\x1b[K", "").replace("\x1b[J", "") for line in lines]
            if all(any(word in line for line in lines) for word in words):
                return lines

    def press(self, keys: str, *words: str) -> list[str]:
        self.screen.type(keys)
        return self.see(*words)


def view(cli: CommandLine, *arguments: str, columns: int = 80, lines: int = 24) -> Screen:
    return Screen(cli.workspace, "replay", *arguments, columns=columns, lines=lines)
