"""A process that has Headwater imported, and runs each command in a fork of its own: ``python command_zygote.py SOCKET``.

A client (``command_client.py``, which stands for ``headwater`` on the PATH) hands over its streams, arguments, folder and environment,
learns the exit code, and by going away ends the command. So a command costs what it does, without half a second for imports.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import signal
import socket
import sys
import traceback
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

FIRST_BYTES = 1 << 20


def main(path: str) -> None:
    for group in ("headwater.commands", "headwater.backends"):
        for point in entry_points(group=group):
            point.load()
    import headwater.cli

    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen(16)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are not waited for
        print("ready", flush=True)  # noqa: T201
        while door in select.select([door, sys.stdin], [], [])[0]:  # its standard input ends with whoever started it
            client, _ = door.accept()
            with client:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    door.close()
                    keep(client, headwater.cli.main)


def keep(client: socket.socket, command: Any) -> None:
    """Start the command, and tell its end; if the client goes away before, end the command."""
    message, streams, _, _ = socket.recv_fds(client, FIRST_BYTES, 3)
    asked = json.loads(message)
    child = os.fork()
    if child == 0:
        os._exit(run(asked, streams, command))
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(child)
    while ended not in select.select([ended, client], [], [])[0]:
        sent = client.recv(1)
        os.kill(child, sent[0] if sent else signal.SIGKILL)
        if not sent:
            break
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):  # the client may be gone
        client.sendall(str(status if status >= 0 else 128 - status).encode())
    os._exit(0)


def run(asked: dict[str, Any], streams: list[int], command: Any) -> int:
    """The exit code of the command, as the process that it would be."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.setsid()
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = ["headwater", *asked["arguments"]]
    try:
        if asked["program"] == "headwater-session":
            python_session()
            return 0
        command()
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
            return 1
        return end.code or 0
    except BaseException:  # noqa: BLE001 - as Python itself ends a program
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def python_session() -> None:
    """Run each block that comes on the standard input, in base64 a line, and print the line that follows it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    sys.path.insert(0, str(Path.cwd()))
    for line in sys.stdin:
        source, mark = line.split()
        try:
            exec(compile(base64.b64decode(source), "<page>", "exec"), names)
            result = "0"
        except BaseException:  # noqa: BLE001 - the page shows what its reader would see
            traceback.print_exc()
            result = "1"
        sys.stderr.flush()
        print(f"{mark} {result}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
