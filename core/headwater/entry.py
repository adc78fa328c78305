"""Where the program begins: it answers help from a table, and is interrupted in one line while it is being loaded.

Imports nothing of the house before it can take Ctrl-C, and for help nothing but the table: all of a command takes longer to load than most
commands to run.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from headwater.interrupts import end_at_interrupts

__all__ = ["run"]


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
