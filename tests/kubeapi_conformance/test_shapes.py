"""What no real server was asked is found among what ours was asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from probe_client import Client

from kubeapi.shapes import shape_of
from kubetest.recorded_shapes import NOT_RECORDED, assert_recorded, general, recorded_shapes, unrecorded_shapes

pytestmark = pytest.mark.long

REALMS = "/apis/headwater.dev/v1alpha1/realms"
WATCH = f"{REALMS}?watch=true&allowWatchBookmarks=true&resourceVersion=290"


@pytest.fixture
def operator(server: str) -> Iterator[Client]:
    """Asks as Headwater's operator would."""
    made = Client(server, agent="kopf/1.45.2")
    yield made
    made._connection.close()


def test_request_as_it_was_recorded_is_known(operator: Client, server: str) -> None:
    before = unrecorded_shapes(server)
    operator.get(f"{WATCH}&timeoutSeconds=1", accept="*/*")

    assert unrecorded_shapes(server) == before


@pytest.mark.parametrize(
    ("path", "accept", "said"),
    [
        (f"{WATCH}&timeoutSeconds=600.0", "*/*", "timeoutSeconds=decimal"),
        (f"{WATCH}&timeoutSeconds=600&sendInitialEvents=true", "*/*", "sendInitialEvents=bool"),
        (f"{REALMS}?limit=500", "application/yaml", "accepts application/yaml"),
        ("/apis/apps/v1/statefulsets", "application/json", "statefulsets"),
    ],
    ids=["type of a value", "parameter", "media type", "path"],
)
def test_shape_that_no_recording_has_is_named(operator: Client, server: str, path: str, accept: str, said: str) -> None:
    operator.get(path, accept=accept)

    with pytest.raises(AssertionError, match="no recording has these shapes") as refused:
        assert_recorded(server)
    assert said in str(refused.value)


def test_body_counts_by_its_keys() -> None:
    shapes = [
        shape_of("PATCH", "/api/v1/namespaces/a/pods/b/status", (), accept="*/*", media="m", body=body)
        for body in ({"b": 1, "a": 2}, [{"op": "remove", "path": "/metadata/finalizers/12"}])
    ]

    start = "PATCH /api/v1/namespaces/{namespace}/pods/{name}/status accepts */* sends m"
    assert shapes == [f"{start} {{a, b}}", f"{start} {{remove /metadata/finalizers/N}}"]


def test_namespace_and_the_selector_of_a_list_make_no_difference() -> None:
    query = [("limit", "1"), ("labelSelector", "a=b")]
    narrow = shape_of("GET", "/apis/headwater.dev/v1alpha1/namespaces/a/catalogs", query, accept="*/*")
    wide = shape_of("GET", REALMS, query[:1], accept="*/*")

    assert general(narrow) == general(wide)


def test_request_recorded_as_refused_is_unknown() -> None:
    assert not [shape for shape in recorded_shapes() if "decimal" in shape]


def test_shape_that_was_recorded_needs_no_reason() -> None:
    assert recorded_shapes().isdisjoint(NOT_RECORDED)
