"""The program `kubectl-headwater`, or one sentence where the libraries of the plugin are missing."""

from __future__ import annotations

import sys

from headwater.exits import exit_code
from headwater.extras import missing_extra

__all__ = ["kubectl_main"]


def kubectl_main() -> None:
    try:
        from headwater_operator.plugin import main as run
    except ModuleNotFoundError as absent:
        refused = missing_extra(absent)
        text = str(refused) if refused else f"a bug: {type(absent).__name__}: {absent}"
        print(f"kubectl-headwater: {text}", file=sys.stderr)  # noqa: T201 - what a command says to a person
        sys.exit(exit_code(refused) if refused else 1)
    run()
