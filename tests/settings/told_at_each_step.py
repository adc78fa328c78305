"""A process that gets SIGTERM at one step of its wait for the end after the other, each time anew: ``python told_at_each_step.py``.

Prints how many steps there are. A handler that waits for what the interrupted step holds never lets it come so far.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any

from headwater.exits import stop_at_signals

WAIT_SECONDS = 0.005
HEARD_SECONDS = 30.0


def main() -> int:
    step = 0
    while _was_told_at(step):
        step += 1
    sys.stdout.write(f"{step}\n")
    return 0


def _was_told_at(step: int) -> bool:
    """Wait once, with a signal at this step of the interpreter. Returns whether the wait has so many."""
    stop, steps = stop_at_signals(), 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        if frame.f_code.co_filename != threading.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            steps += 1
            if steps == step + 1:
                signal.raise_signal(signal.SIGTERM)
        return trace

    sys.settrace(trace)
    stop.wait(WAIT_SECONDS)
    sys.settrace(None)
    if steps <= step:
        return False
    assert stop.wait(HEARD_SECONDS), f"step {step}: the signal was lost"
    return True


if __name__ == "__main__":
    sys.exit(main())
