"""Looking again and again at what changes: a table that is drawn anew on a terminal, and line by line what changed elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import click

from headwater.cli.fields import View
from headwater.cli.printing import in_columns
from headwater.cli.session import Session
from headwater.clock import Clock
from headwater.console import yaml_text
from headwater.errors import UnavailableError

__all__ = ["watch"]

T = TypeVar("T")


def watch(
    session: Session,
    view: View[T],
    look: Callable[[], Sequence[T]],
    *,
    clock: Clock,
    every_seconds: float,
    for_seconds: float | None,
) -> None:
    """Show what is found, and what changes, until interrupted or for so long. A store that is away for a while is told, and waited for."""
    ends = None if for_seconds is None else clock.monotonic() + for_seconds
    screen = _Screen(session, view)
    while True:
        try:
            screen.show(look())
        except UnavailableError as away:
            session.warn(str(away))
        if ends is not None and clock.monotonic() + every_seconds > ends:
            return
        clock.sleep(every_seconds)


class _Screen(Generic[T]):
    """What was shown last."""

    def __init__(self, session: Session, view: View[T]) -> None:
        self._session = session
        self._view = view
        self._shown: dict[str, dict[str, Any]] | None = None

    def show(self, items: Sequence[T]) -> None:
        found = {str(data[self._view.fields[0].name]): data for data in map(self._view.data, items)}
        if found == self._shown:
            return
        before, self._shown = self._shown or {}, found
        if self._session.output == "table" and sys.stdout.isatty():
            click.clear()
            click.echo(in_columns(self._view, items))
            return
        changed = [item for item, (name, data) in zip(items, found.items(), strict=True) if before.get(name) != data]
        self._print(changed, is_first=not before)

    def _print(self, changed: Sequence[T], *, is_first: bool) -> None:
        for item in changed if self._session.output != "table" else ():
            data = self._view.data(item)
            text = (
                json.dumps(data, ensure_ascii=False) if self._session.output == "json" else "---\n" + yaml_text(data).rstrip()
            )
            click.echo(text)
        if self._session.output == "table" and (changed or is_first):
            lines = in_columns(self._view, changed).splitlines()
            click.echo("\n".join(lines if is_first else lines[1:]))
