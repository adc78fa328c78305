"""Write the pages of the documentation that say what the code says: ``python docs/generate.py``, or ``make docs``."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headwater.settings import Settings, duration_text, variable_of

FOLDER = Path(__file__).parent
SETTINGS_HEAD = """\
# Settings

Every setting has one default, which stands in `headwater.settings` and nowhere else.
This page is written from there by `make docs`.

Each setting is an environment variable.
Durations are written like `90s`, `15m`, `24h`, `1h30m` or `30d`.
All values are checked together at the start, and every wrong one is named at once.

| setting | default | what it is |
|---|---|---|
"""


def main() -> None:
    (FOLDER / "settings.md").write_text(settings_page(), encoding="utf-8")
    (FOLDER / "cli.md").write_text(cli_page(), encoding="utf-8")


def settings_page() -> str:
    return SETTINGS_HEAD + "".join(f"{row}\n" for row in _settings_rows())


def cli_page() -> str:
    """The page of the command line, as its own package writes it."""
    command = [sys.executable, "-m", "headwater.cli.documentation"]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout


def _settings_rows() -> Iterator[str]:
    for field in dataclasses.fields(Settings):
        default = _shown(field.default, field.metadata["unit"])
        yield f"| `{variable_of(field.name)}` | {default} | {field.metadata['purpose']} |"


def _shown(value: Any, unit: str) -> str:
    if unit == "seconds":
        return duration_text(value)
    if unit == "bytes":
        return f"{value} ({value // 1024**2} MiB)"
    if unit == "text":
        return f"`{value}`"
    return f"{str(value).lower()} {unit}".rstrip()


if __name__ == "__main__":
    main()
