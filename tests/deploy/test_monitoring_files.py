"""Prometheus and Grafana without Kubernetes: made from the chart's files, and asking for what workers and servers show."""

from __future__ import annotations

import json
import re
import runpy
from typing import Any

import promql_parser
import pytest
import yaml
from compose_services import DEPLOY, compose_file

from headwater.monitoring import MetricDescription
from headwater_server.server_metrics import SERVER_CATALOGUE
from headwater_workers.worker_metrics import WORKER_CATALOGUE

SERIES = re.compile(r"(headwater_\w+)\{([^}]*)\}")
CATALOGUES: dict[str, Any] = {"headwater-worker": WORKER_CATALOGUE, "headwater-server": SERVER_CATALOGUE}


def sample_names(catalogue: tuple[MetricDescription, ...]) -> set[str]:
    endings = {"histogram": ("_bucket", "_sum", "_count")}
    return {metric.name + ending for metric in catalogue for ending in endings.get(metric.type, ("",))}


@pytest.fixture(scope="module")
def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


@pytest.fixture(scope="module")
def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana" / "headwater.json").read_text(encoding="utf-8"))
    return found


def expressions(board: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]


def test_files_are_made_from_those_of_the_chart() -> None:
    made = runpy.run_path(str(DEPLOY / "generate.py"))["documents"]()

    assert [str(path) for path, text in made.items() if path.read_text(encoding="utf-8") != text] == [], "run `make docs`"


def test_alerts_ask_each_job_for_metrics_that_it_shows(rules: list[dict[str, Any]]) -> None:
    assert len(rules) > 10
    for rule in rules:
        promql_parser.parse(rule["expr"])
        series = SERIES.findall(rule["expr"])
        assert series, rule["alert"]
        for name, matchers in series:
            job = re.search(r'job="([^"]+)"', matchers)
            assert job and name in sample_names(CATALOGUES[job[1]]), (rule["alert"], name)


def test_alerts_cover_everything_but_the_operator(rules: list[dict[str, Any]]) -> None:
    chart = yaml.safe_load((DEPLOY.parent / "charts/headwater/files/alerts.yaml").read_text(encoding="utf-8"))["alerts"]
    left_out = {alert["alert"]: alert["expr"] for alert in chart} | {rule["alert"]: "" for rule in rules}

    assert [name for name, expression in left_out.items() if expression and "headwater_operator_" not in expression] == []


def test_dashboard_asks_for_metrics_that_workers_and_servers_show(board: dict[str, Any]) -> None:
    shown = sample_names(WORKER_CATALOGUE) | sample_names(SERVER_CATALOGUE)
    asked = {name for text in expressions(board) for name in re.findall(r"headwater_\w+", text)}

    assert len(asked) > 15
    assert asked - shown == set()


def test_dashboard_finds_its_choices_in_what_is_shown(board: dict[str, Any]) -> None:
    queries = [variable["definition"] for variable in board["templating"]["list"] if "definition" in variable]
    named = {name for query in queries for name in re.findall(r"headwater_\w+", query)}

    assert named == {"headwater_store_up", "headwater_server_draining"}


def test_prometheus_asks_services_where_they_answer(rules: list[dict[str, Any]]) -> None:
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text(encoding="utf-8"))
    asked = {job["job_name"]: job["static_configs"][0]["targets"][0] for job in config["scrape_configs"]}
    services = compose_file()["services"]

    assert set(asked) == set(CATALOGUES)
    worker, server = services["worker"]["environment"], services["server"]["environment"]
    assert asked["headwater-worker"] == worker["HEADWATER_WORKER_PROBES"].replace("*", "worker")
    assert asked["headwater-server"] == server["HEADWATER_SERVER_PROBES"].replace("*", "server")
