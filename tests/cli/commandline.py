"""How the tests call the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from headwater.cli import main

__all__ = ["CommandLine"]


@dataclass(frozen=True)
class CommandLine:
    """Calls ``headwater`` in this process, on one store."""

    url: str
    environment: dict[str, str]

    def __call__(self, *arguments: str | Path) -> Result:
        texts = ["--store", self.url, *map(str, arguments)]
        return CliRunner().invoke(main, texts, env=self.environment, prog_name="headwater")

    def typed(self, text: str, *arguments: str | Path) -> Result:
        """The same for a person who types a text."""
        texts = ["--store", self.url, *map(str, arguments)]
        return CliRunner().invoke(main, texts, env=self.environment, prog_name="headwater", input=text)

    def ok(self, *arguments: str | Path) -> str:
        """What a command prints that ends with 0."""
        result = self(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def items(self, *arguments: str | Path) -> Any:
        """The items of a page, as JSON."""
        return self.data(*arguments)["items"]

    def data(self, *arguments: str | Path) -> Any:
        """The same as JSON."""
        return json.loads(self.ok("-o", "json", *arguments))
