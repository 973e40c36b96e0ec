"""A program that stands for a command: it is started, and the command is forked by a server.

    python -IS forked_command_program.py SERVER ARGUMENT…

The command has this program's input, output, directory, environment and signals, and the program
ends as the command does. See `forked_commands`.
"""

import json
import os
import signal
import socket
import sys
from types import FrameType
from typing import NoReturn


def main(server: str, arguments: list[str]) -> NoReturn:
    call = {"arguments": arguments, "directory": os.getcwd(), "variables": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(server)
        socket.send_fds(connection, [b"\0"], [0, 1, 2])
        connection.sendall(json.dumps(call).encode())
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as answer:
            command = int(answer.readline())

            def pass_on(number: int, frame: FrameType | None) -> None:
                os.kill(command, number)

            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, pass_on)
            status = int(answer.read())
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


main(sys.argv[1], sys.argv[2:])
