"""The chart looks at the definitions in the cluster: it does not render over a newer one unless its annotation allows that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from stories import Story
from test_helm_waits import helm

from headwater_operator.kube import resource_path

pytestmark = pytest.mark.long
CHART = Path(__file__).parents[2] / "charts" / "headwater"
REVISION, ALLOWED = "headwater.dev/schema-revision", "headwater.dev/allow-older-schema"
DEFINITION = resource_path("CustomResourceDefinition", None, "realms.headwater.dev")


@pytest.fixture
def newer(story: Story) -> Iterator[Story]:
    """A cluster with a definition of a later release."""
    before = story.namespace.cluster.api.get_resource(DEFINITION)["metadata"].get("annotations", {})
    annotate(story, {REVISION: "99"})
    yield story
    annotate(story, {ALLOWED: "true"})
    annotate(story, {name: before.get(name) for name in (REVISION, ALLOWED)})


def annotate(story: Story, annotations: dict[str, str | None]) -> None:
    story.namespace.cluster.api.patch_resource(DEFINITION, {"metadata": {"annotations": annotations}}, kind="merge")


def rendering_error(story: Story, folder: Path) -> str:
    options = ("--values", str(CHART / "ci" / "default-values.yaml"), "--show-only", "templates/crds.yaml", "--dry-run=server")
    return helm(story, folder, "template", "headwater", str(CHART), *options).stderr


def test_newer_definition_is_not_replaced(newer: Story, tmp_path: Path) -> None:
    text = rendering_error(newer, tmp_path)

    assert "realms.headwater.dev (schema revision 99)" in text and f"{ALLOWED}=true" in text


def test_annotated_definition_is_replaced(newer: Story, tmp_path: Path) -> None:
    annotate(newer, {ALLOWED: "true"})

    # It renders, and is then refused by helm itself, because the definitions are those of another release.
    assert "invalid ownership metadata" in rendering_error(newer, tmp_path)
