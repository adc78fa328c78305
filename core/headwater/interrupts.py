"""What Ctrl-C does while a program is being loaded, and while it works.

Python's own KeyboardInterrupt may come out of any line, also out of one where it can only be printed. While modules are loaded, and when
all is done, there is nothing to clean up, and the process ends at once.
"""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

__all__ = ["end_at_interrupts", "raise_at_interrupts"]

_INTERRUPTED = 130


def end_at_interrupts() -> None:
    """End the process, in one line, at the next Ctrl-C. A process that ignores Ctrl-C, as in the background of a script, still does."""
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
    os._exit(_INTERRUPTED)
