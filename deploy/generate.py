"""Write what Prometheus and Grafana are given without Kubernetes, from the alerts and the dashboard of the chart: `make docs`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
SOURCE = FOLDER.parent / "charts" / "headwater" / "files"
JOBS = {"store": "headwater-worker", "worker": "headwater-worker", "server": "headwater-server"}
"""The job whose series an alert asks for, by what the alert is about; those about the operator are left out."""
OF_THE_OPERATOR = "headwater_operator_"


def main() -> None:
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")


def documents() -> dict[Path, str]:
    """Each file with its text."""
    return {
        FOLDER / "prometheus" / "alerts.yaml": alert_rules(),
        FOLDER / "grafana" / "headwater.json": json.dumps(dashboard(), indent=1) + "\n",
    }


def alert_rules() -> str:
    """The rules of Prometheus."""
    alerts = yaml.safe_load((SOURCE / "alerts.yaml").read_text(encoding="utf-8"))["alerts"]
    rules = [_rule(alert) for alert in alerts if alert["about"] in JOBS]
    text = yaml.safe_dump({"groups": [{"name": "headwater", "rules": rules}]}, sort_keys=False, width=1000)
    return "# Made by deploy/generate.py from charts/headwater/files/alerts.yaml.\n" + text


def dashboard() -> dict[str, Any]:
    """The dashboard without the panels of the operator, which close up. A process is known by its address, for there are no pods."""
    text = (SOURCE / "dashboard.json").read_text(encoding="utf-8")
    board: dict[str, Any] = json.loads(text.replace("by (pod)", "by (instance)").replace("{{pod}}", "{{instance}}"))
    board["panels"] = [panel for panel in board["panels"] if not _is_of_the_operator(panel)]
    return board


def _rule(alert: dict[str, Any]) -> dict[str, Any]:
    return {
        "alert": alert["alert"],
        "expr": alert["expr"].replace("SERIES", f'job="{JOBS[alert["about"]]}"'),
        "for": alert["for"],
        "labels": {"severity": alert["severity"]},
        "annotations": {"summary": alert["summary"], "description": f"{alert['description']} {alert['action']}"},
    }


def _is_of_the_operator(panel: dict[str, Any]) -> bool:
    return any(OF_THE_OPERATOR in target["expr"] for target in panel.get("targets", []))


if __name__ == "__main__":
    main()
