"""Where the program begins: it answers help from a table, and ends in one line when it is interrupted while it is being loaded.

Imports nothing of the house before it can take Ctrl-C, and for help nothing but the table: all of a command takes longer to load than most
commands to run.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130


def run() -> NoReturn:
    """Run the command line of this process."""
    end_at_interrupts()
    from headwater.help_pages import print_help

    code = print_help(sys.argv[1:])
    if code is not None:
        sys.exit(code)
    from headwater.cli import main

    try:
        sys.exit(main(prog_name="headwater"))
    finally:
        end_at_interrupts()


def end_at_interrupts() -> None:
    """End the process at once, in one line, at the next Ctrl-C: nothing has to be cleaned up while it is loaded, and when all is done.

    Python's own KeyboardInterrupt may come out of any line, also where it can only be printed. A process that ignores Ctrl-C, as those in
    the background of a script do, goes on ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_at_interrupts() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again: what runs from now on cleans up."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    # no logging, which may be half loaded, nor a buffer, which the interrupted line may be writing to
    is_json = os.environ.get("HEADWATER_LOG_FORMAT") == "json"
    line = b'{"event": "interrupted", "level": "warning"}\n' if is_json else b"headwater: interrupted\n"
    os.write(2, line)
    os._exit(INTERRUPTED)
