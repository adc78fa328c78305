"""Stands for ``headwater`` on the PATH: the zygote at the socket $PAGE_ZYGOTE runs the command. It imports little, to start at once."""

import json
import os
import signal
import socket
import sys


def main() -> int:
    environment = dict(os.environ)
    program = sys.argv[0].rpartition("/")[2]
    asked = {"program": program, "arguments": sys.argv[1:], "folder": os.getcwd(), "environment": environment}  # noqa: PTH109 - pathlib takes long to import
    with socket.socket(socket.AF_UNIX) as zygote:
        zygote.connect(environment.pop("PAGE_ZYGOTE"))
        socket.send_fds(zygote, [json.dumps(asked).encode()], [0, 1, 2])
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: zygote.send(bytes([number])))
        return int(zygote.recv(16) or b"1")


sys.exit(main())
