"""What metrics say of imports: each run once, however often it is seen, and bounded by realm."""

from __future__ import annotations

from typing import Any

import pytest
from bodies import NOW, catalog_seen, ended, import_seen, later
from prometheus_client.parser import text_string_to_metric_families

from headwater.monitoring import OTHERS
from headwater.reconcile import CatalogDescription
from headwater.tasks import TaskState
from headwater_operator.metrics.operator_metrics import OperatorMetrics
from headwater_operator.runtime.informer_cache import ResourceKey

LAKE = ResourceKey("Catalog", "default", "lake")
SALES = ResourceKey("Catalog", "default", "sales")


@pytest.fixture
def metrics() -> OperatorMetrics:
    """Of a leader that tells two realms by name."""
    metrics = OperatorMetrics(realms=2)
    metrics.sources.is_leading = lambda: True
    return metrics


def imported(task: str = "1", *, finished: float = -60, left: int = 2, **counts: int) -> CatalogDescription:
    """A catalog with one import, whose last run counted this."""
    outcome = {"imported": 3, **counts, "quarantined": {"total": left, "codes": {"Corrupt": left}, "shown": []}}
    return catalog_seen(imports=(import_seen(last=ended(id=task, finished=later(finished), outcome=outcome)),))


def shown(metrics: OperatorMetrics, name: str) -> dict[tuple[str, ...], float]:
    """The samples of a family by the values of their labels, those of nothing left out."""
    families = {one.name: one for one in text_string_to_metric_families(metrics.render().decode())}
    family = families[f"headwater_import_{name}"]
    labels = ("realm", "outcome")
    return {
        tuple(sample.labels[label] for label in labels if label in sample.labels): sample.value
        for sample in family.samples
        if sample.value
    }


def test_run_is_counted_once_however_often_it_is_seen(metrics: OperatorMetrics) -> None:
    for _ in range(3):
        metrics.set_catalog(LAKE, "acme", imported("1"))
    metrics.set_catalog(LAKE, "acme", imported("2", imported=0, updated=1, unchanged=2))

    assert shown(metrics, "tables") == {
        ("acme", "imported"): 3,
        ("acme", "updated"): 1,
        ("acme", "unchanged"): 2,
        ("acme", "quarantined"): 4,
    }


def test_run_from_before_this_leader_was_counted_by_another(metrics: OperatorMetrics) -> None:
    metrics.lead_from(NOW)
    metrics.set_catalog(LAKE, "acme", imported(finished=-1))

    assert shown(metrics, "tables") == {}
    assert shown(metrics, "quarantined_tables") == {("acme",): 2}


def test_tables_left_alone_add_up_over_a_realms_catalogs(metrics: OperatorMetrics) -> None:
    metrics.set_catalog(LAKE, "acme", imported(left=2))
    metrics.set_catalog(SALES, "acme", imported(left=5))

    assert shown(metrics, "quarantined_tables") == {("acme",): 7}


def test_success_longest_ago_is_told_and_outlives_a_failure(metrics: OperatorMetrics) -> None:
    metrics.set_catalog(SALES, "acme", imported(finished=-50))
    metrics.set_catalog(LAKE, "acme", imported(finished=-90))
    failed: dict[str, Any] = {"last": ended(TaskState.FAILED, id="9"), "succeeded": imported(finished=-90).imports[0].succeeded}
    metrics.set_catalog(LAKE, "acme", catalog_seen(imports=(import_seen(**failed),)))

    assert shown(metrics, "last_success_timestamp_seconds") == {("acme",): later(-90) / 1_000_000}


def test_realms_beyond_the_limit_share_a_label_for_imports(metrics: OperatorMetrics) -> None:
    for realm in ("a", "b", "c", "d"):
        metrics.set_catalog(ResourceKey("Catalog", realm, "lake"), realm, imported(left=0))

    assert shown(metrics, "tables") == {("a", "imported"): 3, ("b", "imported"): 3, (OTHERS, "imported"): 6}


def test_catalog_that_is_gone_or_imports_no_more_is_forgotten(metrics: OperatorMetrics) -> None:
    metrics.set_catalog(LAKE, "acme", imported())
    metrics.set_catalog(SALES, "other", imported())
    metrics.forget_catalog(LAKE)
    metrics.set_catalog(SALES, "other", catalog_seen())

    assert shown(metrics, "quarantined_tables") == {}


def test_catalog_in_another_realm_than_before_counts_there(metrics: OperatorMetrics) -> None:
    metrics.set_catalog(LAKE, "acme", imported())
    metrics.set_catalog(LAKE, "later", imported())

    assert shown(metrics, "quarantined_tables") == {("later",): 2}
