"""Alerts and the dashboard: every expression is one, and asks for metrics that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml
from rendered_chart import CHART, NAMESPACE, Rendered, render

from headwater_operator.metrics.operator_metrics import CATALOGUE as OPERATOR_CATALOGUE
from headwater_server.server_metrics import SERVER_CATALOGUE

CATALOGUE = (*OPERATOR_CATALOGUE, *SERVER_CATALOGUE)
SERVERS = "headwater_server_"
TARGET_LABELS = {"namespace", "job", "instance", "pod", "le"}


@pytest.fixture(scope="module")
def rendered() -> Rendered:
    return render("everything")


@pytest.fixture(scope="module")
def rules(rendered: Rendered) -> list[dict[str, Any]]:
    (group,) = rendered.one("PrometheusRule")["spec"]["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


@pytest.fixture(scope="module")
def panels(rendered: Rendered) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(rendered.one("ConfigMap", "-dashboard")["data"]["headwater.json"])["panels"]
    return found


def releases_own(name: str) -> dict[str, str]:
    """The matchers of a metric of this release."""
    component = "server" if name.startswith(SERVERS) else "operator"
    return {"namespace": NAMESPACE, "job": f"lakehouse-{component}-metrics"}


def selectors(expression: Any) -> Iterator[Any]:
    """The series that an expression reads."""
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression
    for name in ("expr", "lhs", "rhs", "vector_selector", "param"):
        inner = getattr(expression, name, None)
        if inner is not None and not isinstance(inner, str):
            yield from selectors(inner)
    for inner in getattr(expression, "args", None) or ():
        yield from selectors(inner)


def read_series(text: str) -> list[tuple[str, dict[str, str]]]:
    """Each metric of an expression, with its matchers."""
    parsed = promql_parser.parse(text.replace("$__rate_interval", "5m"))
    found = [(one.name, {matcher.name: matcher.value for matcher in one.matchers.matchers}) for one in selectors(parsed)]
    assert len(found) == len(re.findall(r"headwater_\w+", text)), f"not all series of {text} were found"
    return found


def samples() -> dict[str, tuple[str, ...]]:
    """The names of all series with their labels; a histogram has several."""
    found: dict[str, tuple[str, ...]] = {}
    for metric in CATALOGUE:
        endings = ("_bucket", "_sum", "_count") if metric.type == "histogram" else ("",)
        found |= {metric.name + ending: metric.labels for ending in endings}
    return found


def faults(text: str) -> list[str]:
    """Series that nobody shows, or labels that they do not have."""
    known = samples()
    series = read_series(text)
    unknown = [name for name, _ in series if name not in known]
    wrong = [
        f"{name}: {label}" for name, labels in series for label in labels if label not in {*known.get(name, ()), *TARGET_LABELS}
    ]
    groups = [label.strip() for found in re.findall(r"\bby \(([^)]*)\)", text) for label in found.split(",")]
    labels = {label for name, _ in series for label in known.get(name, ())} | TARGET_LABELS
    return unknown + wrong + [f"by {label}" for label in groups if label and label not in labels]


def test_every_alert_asks_for_metrics_that_there_are(rules: list[dict[str, Any]]) -> None:
    assert [(rule["alert"], fault) for rule in rules for fault in faults(rule["expr"])] == []


def test_every_alert_asks_only_for_series_of_its_own_release(rules: list[dict[str, Any]]) -> None:
    for rule in rules:
        for name, matchers in read_series(rule["expr"]):
            assert releases_own(name).items() <= matchers.items(), (rule["alert"], name)


def test_every_alert_says_what_is_wrong_and_what_to_do(rules: list[dict[str, Any]]) -> None:
    for rule in rules:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["annotations"]["description"].endswith(".")
        assert rule["annotations"]["runbook_url"].endswith(f"#{rule['alert'].lower()}")


def test_alert_fills_in_labels_that_its_expression_keeps(rules: list[dict[str, Any]]) -> None:
    for rule in rules:
        told = " ".join(rule["annotations"].values())
        kept = {label for found in re.findall(r"\bby \(([^)]*)\)", rule["expr"]) for label in re.split(r",\s*", found)}

        assert set(re.findall(r"\$labels\.(\w+)", told)) <= kept, rule["alert"]


def test_alerts_cover_what_goes_wrong(rules: list[dict[str, Any]]) -> None:
    asked = {name for rule in rules for name, _ in read_series(rule["expr"])}

    assert {
        "headwater_operator_leader",
        "headwater_operator_reconcile_total",
        "headwater_operator_queue_oldest_seconds",
        "headwater_operator_drift_total",
        "headwater_operator_resources",
        "headwater_store_up",
        "headwater_tasks",
        "headwater_task_oldest_due_seconds",
        "headwater_task_dead_letters",
        "headwater_maintenance_next_due_timestamp_seconds",
        "headwater_maintenance_last_success_timestamp_seconds",
        "headwater_purge_rows_remaining",
        "headwater_server_requests_total",
        "headwater_server_request_seconds_bucket",
        "headwater_server_commits_total",
        "headwater_server_draining",
    } <= asked


def test_outcomes_that_alerts_count_are_known(rules: list[dict[str, Any]]) -> None:
    outcomes = {labels["outcome"] for rule in rules for _, labels in read_series(rule["expr"]) if "outcome" in labels}

    assert outcomes == {"error", "unknown"}


def test_every_panel_asks_for_metrics_that_there_are(panels: list[dict[str, Any]]) -> None:
    expressions = [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", [])]

    assert len(expressions) > 20
    assert [(title, fault) for title, expression in expressions for fault in faults(expression)] == []


def test_every_metric_is_in_an_alert_or_on_the_dashboard(panels: list[dict[str, Any]], rules: list[dict[str, Any]]) -> None:
    texts = [target["expr"] for panel in panels for target in panel.get("targets", [])] + [rule["expr"] for rule in rules]
    shown = " ".join(texts)

    assert [metric.name for metric in CATALOGUE if metric.name not in shown] == []


def test_dashboard_lets_the_release_be_chosen(rendered: Rendered, panels: list[dict[str, Any]]) -> None:
    board = json.loads(rendered.one("ConfigMap", "-dashboard")["data"]["headwater.json"])

    assert [variable["name"] for variable in board["templating"]["list"]] == ["datasource", "namespace", "job", "server"]
    for panel in panels:
        for target in panel.get("targets", []):
            for name, matchers in read_series(target["expr"]):
                assert matchers["namespace"] == "$namespace"
                assert matchers["job"] == ("$server" if name.startswith(SERVERS) else "$job")


def test_panels_do_not_lie_on_each_other(panels: list[dict[str, Any]]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_dashboard_without_prometheus_kinds_is_still_made() -> None:
    assert render("ha", monitoring=False).of("ConfigMap")[-1]


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PrometheusRule"])
def test_prometheus_resources_are_there_where_known_or_forced(kind: str) -> None:
    assert len(render("ha", monitoring=True).of(kind)) == 1
    assert render("ha", monitoring=False).of(kind) == []
    assert len(render("everything", monitoring=False).of(kind)) == {"ServiceMonitor": 2, "PrometheusRule": 1}[kind]
    assert render("default", monitoring=True).of(kind) == []


def test_scraped_port_is_that_of_the_operators_service() -> None:
    rendered = render("ha")
    service, monitor = rendered.one("Service", "-operator-metrics"), rendered.one("ServiceMonitor")

    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert service["spec"]["ports"][0]["targetPort"] in [port["name"] for port in rendered.pod("-operator").container["ports"]]


def test_alerts_about_servers_come_with_servers() -> None:
    (group,) = render("ha").one("PrometheusRule")["spec"]["groups"]

    assert [rule["alert"] for rule in group["rules"] if SERVERS in rule["expr"]] == []


def test_file_of_alerts_is_rendered_whole(rules: list[dict[str, Any]]) -> None:
    alerts = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))["alerts"]

    assert [rule["alert"] for rule in rules] == [alert["alert"] for alert in alerts if alert["about"] != "worker"]
    assert [rule["alert"] for rule in rules if "SERIES" in rule["expr"]] == []


def test_argocd_health_check_is_there_for_both_kinds_when_asked() -> None:
    script = (CHART / "files" / "argocd-health.lua").read_text(encoding="utf-8")
    names = {f"resource.customizations.health.headwater.dev_{kind}" for kind in ("Realm", "Catalog")}

    found = render("default", "argocd.healthChecks=true").one("ConfigMap", "-argocd-health")
    assert {name: text.strip() for name, text in found["data"].items()} == dict.fromkeys(names, script.strip())
    assert "argocd" not in json.dumps(render("default").documents)
