"""The figures in the template. Everything that comes from a store is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import jinja2

from headwater.cli.page.figures import figures_of
from headwater.clock import Micros
from headwater.maintenance import Run

__all__ = ["report_page"]

_TEMPLATE = "report.html.jinja"


def report_page(runs: Sequence[Run], *, store: str, now: Micros) -> str:
    """One HTML page with pictures of some runs, which come newest first. It loads nothing from anywhere.

    store         how the page names the store; without secrets
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    template = environment.from_string(files(__package__).joinpath(_TEMPLATE).read_text(encoding="utf-8"))
    return template.render(page=figures_of(runs, store=store, now=now))
