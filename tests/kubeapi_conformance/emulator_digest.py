"""The digest of our Kubernetes API server with which its conformance suite last passed: the suite runs again when it differs.

``make test-kube`` always runs the suite, and then writes the digest, which is committed with the change: ``emulator_digest.py --write``.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

__all__ = ["COMMITTED", "compute_digest", "read_committed_digest"]

FOLDER = Path(__file__).parent
COMMITTED = FOLDER / "emulator.sha256"
DIGESTED = (FOLDER.parent / "kubeapi", FOLDER)


def compute_digest() -> str:
    """Of the emulator, of the suite, and of what was recorded from a real server."""
    digest = hashlib.sha256()
    for folder in DIGESTED:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path != COMMITTED and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(FOLDER.parent)}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def read_committed_digest() -> str:
    return COMMITTED.read_text(encoding="utf-8").strip() if COMMITTED.exists() else ""


if __name__ == "__main__":
    if "--write" in sys.argv:
        COMMITTED.write_text(f"{compute_digest()}\n", encoding="utf-8")
    print(f"committed {read_committed_digest()}, is {compute_digest()}")  # noqa: T201 - the output of a program
