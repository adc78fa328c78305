"""Render figures into the HTML template. Everything that comes from a store is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import jinja2

from headwater.cli.html_report.report_figures import ImportFigures, report_figures_of
from headwater.clock import Micros
from headwater.jobs.task_runs import Run


def report_page(runs: Sequence[Run], *, store: str, now: Micros) -> str:
    """Render one HTML page with charts of runs, given newest first. It loads no other file.

    store         how the page names the store; without secrets
    """
    return _template("report.html.jinja").render(page=report_figures_of(runs, store=store, now=now))


def import_page(figures: ImportFigures) -> str:
    """Render one HTML page on an import, with every table that it left out. It loads no other file."""
    return _template("import.html.jinja").render(page=figures)


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        loader=jinja2.FunctionLoader(lambda part: files(__package__).joinpath(part).read_text(encoding="utf-8")),
    )
    return environment.get_template(name)
