"""`helm --wait` with Realms and Catalogs in a release: it ends well when they are ready, and at once when a person has to act."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from stories import Story, catalog_body, realm_body

from kubetest.cluster import as_yaml, program

pytestmark = pytest.mark.long
PATIENCE = 120


def helm(story: Story, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = story.namespace.cluster.environment | {"HELM_CACHE_HOME": str(folder / "cache")}
    command = [program("helm"), *arguments, "--namespace", story.namespace.name]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE + 60, check=False)


def install(story: Story, folder: Path, *bodies: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """A release of these resources, waited for."""
    chart = folder / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(json.dumps({"apiVersion": "v2", "name": "tenants", "version": "1.0.0"}))
    (chart / "templates" / "all.yaml").write_text(as_yaml(bodies))
    return helm(story, folder, "install", "tenants", str(chart), "--wait", "--timeout", f"{PATIENCE}s")


def test_release_is_there_once_its_resources_are_ready(story: Story, tmp_path: Path) -> None:
    done = install(story, tmp_path, catalog_body("lake", story.name), realm_body(story.name))

    assert done.returncode == 0, done.stderr
    assert story.namespace.condition("Realm", story.name, "Ready")["status"] == "True"
    assert story.namespace.condition("Catalog", "lake", "Ready")["status"] == "True"


def test_release_with_a_refused_spec_fails_at_once(story: Story, tmp_path: Path) -> None:
    done = install(story, tmp_path, realm_body(story.name, {"headwater.dev/unheard-of": "yes"}))

    assert done.returncode != 0
    assert "unheard-of" in done.stderr
    assert "deadline" not in done.stderr  # what it says when its time is over
