"""The services of the compose file, and how they are run without containers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"


@dataclass(frozen=True)
class ComposeService:
    """A service as a container would run it."""

    command: list[str]
    environment: dict[str, str]

    def on_loopback(self, replaced: dict[str, str]) -> dict[str, str]:
        """The environment with some values replaced: hosts, ports and folders that are there only in containers.

        raises        KeyError for a value that is not in the environment
        """
        unknown = replaced.keys() - set(self.environment.values())
        if unknown:
            raise KeyError(f"the compose file sets no {sorted(unknown)}")
        return {name: replaced.get(value, value) for name, value in self.environment.items()}


def compose_file() -> dict[str, Any]:
    """The compose file with its merges resolved."""
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


def compose_service(name: str) -> ComposeService:
    service = compose_file()["services"][name]
    return ComposeService(service["command"], service["environment"])
