"""The page for people on call says what the code and the chart say, and leaves nothing out."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from headwater_operator.metrics.operator_metrics import CATALOGUE
from headwater_operator.plugin import main
from headwater_operator.plugin.kubectl_cli import EXIT_CODES
from headwater_operator.resource.reasons import CONDITIONS, REASONS

FOLDER = Path(__file__).parents[2]
PAGE = (FOLDER / "docs" / "operate" / "operating.md").read_text(encoding="utf-8")
PLUGIN_PAGE = (FOLDER / "docs" / "operate" / "kubectl-plugin.md").read_text(encoding="utf-8")
ALERTS = yaml.safe_load((FOLDER / "charts" / "headwater" / "files" / "alerts.yaml").read_text(encoding="utf-8"))["alerts"]
NAMES = [
    *(condition.name for condition in CONDITIONS),
    *(reason.name for reason in REASONS.values() if reason.conditions or reason.event),
    *(metric.name for metric in CATALOGUE),
]


@pytest.fixture(scope="module")
def generator() -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / "docs" / "generate.py"))


def test_tables_say_what_the_code_says(generator: dict[str, Any]) -> None:
    assert generator["operating_page"](PAGE) == PAGE, "run `make docs`"


@pytest.mark.parametrize("name", NAMES)
def test_every_condition_reason_event_and_metric_has_its_row(name: str) -> None:
    assert f"| `{name}` |" in PAGE


@pytest.mark.parametrize("alert", [alert["alert"] for alert in ALERTS])
def test_every_alert_has_a_section_that_runbook_links_lead_to(alert: str) -> None:
    assert re.search(rf"^### {alert}$", PAGE, re.MULTILINE)


def test_every_reason_that_a_warning_has_says_what_to_do() -> None:
    assert [reason.name for reason in REASONS.values() if reason.event == "Warning" and not reason.action] == []


@pytest.mark.parametrize("verb", main.commands)
def test_every_verb_of_the_plugin_has_a_chapter(verb: str) -> None:
    assert f"\n## kubectl headwater {verb}\n" in PLUGIN_PAGE


def test_every_exit_code_of_the_plugin_is_on_its_page() -> None:
    assert [code for code, meaning in EXIT_CODES.items() if f"| {code} | {meaning} |" not in PLUGIN_PAGE] == []


def test_every_option_of_the_plugin_is_on_its_page() -> None:
    options = {
        name for command in main.commands.values() for option in command.params for name in option.opts if name.startswith("--")
    }

    assert [name for name in sorted(options) if f"`{name}" not in PLUGIN_PAGE and f"{name} " not in PLUGIN_PAGE] == []
