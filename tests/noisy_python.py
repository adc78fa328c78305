"""Python processes that warn, and in which a thread ends by an error: what nobody wrote for a log, and a log in JSON has to hold."""

from __future__ import annotations

from pathlib import Path

NOISE = ("a library warns", "the thread noisy ended by an error")
"""What each of these processes logs, beside its own lines."""
_MODULE = """
import threading, time, warnings

def fail():
    for _ in range(1200):
        if threading.excepthook is not threading.__excepthook__:  # the process logs by now
            warnings.warn("a library warns", DeprecationWarning)
            raise ValueError("oops\\nin two lines")
        time.sleep(0.05)

threading.Thread(target=fail, name="noisy", daemon=True).start()
"""


def noisy_variables(folder: Path) -> dict[str, str]:
    """The environment variables of such processes. All warnings are shown, also those of modules that are imported first."""
    (folder / "noisy").mkdir()
    (folder / "noisy" / "sitecustomize.py").write_text(_MODULE, encoding="utf-8")
    return {"PYTHONPATH": str(folder / "noisy"), "PYTHONWARNINGS": "always"}
