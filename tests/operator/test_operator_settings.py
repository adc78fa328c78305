"""The operator's settings: their defaults, how they are read, and how they are refused."""

from __future__ import annotations

import dataclasses

import pytest

from headwater.errors import RefusedError
from headwater_operator.runtime.operator_settings import OperatorSettings, operator_variable

DEFAULTS = {
    "namespaces": (),
    "label_selector": "",
    "resync_seconds": 300,
    "concurrency": 4,
    "writes_per_second": 50,
    "write_burst": 100,
    "leader_election": True,
    "lease_name": "headwater-operator",
    "lease_duration_seconds": 15,
    "lease_renew_deadline_seconds": 10,
    "lease_renew_seconds": 2,
    "lease_retry_seconds": 1,
    "port": 8080,
    "metrics_realms": 200,
    "figures_seconds": 15,
    "watch_silence_seconds": 180,
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_default_is_as_documented(name: str) -> None:
    assert getattr(OperatorSettings(), name) == DEFAULTS[name]


def test_defaults_have_no_faults() -> None:
    assert OperatorSettings().faults() == []


def test_variables_are_named_without_the_unit_and_read_by_type() -> None:
    read = OperatorSettings.from_environment(
        {
            "HEADWATER_OPERATOR_NAMESPACES": "teams, lake ,",
            "HEADWATER_OPERATOR_RESYNC": "1m30s",
            "HEADWATER_OPERATOR_CONCURRENCY": "9",
            "HEADWATER_OPERATOR_LEADER_ELECTION": "false",
            "HEADWATER_OPERATOR_LABEL_SELECTOR": "a=b",
            "HEADWATER_RUNS_KEPT": "7",
        }
    )

    assert (read.namespaces, read.resync_seconds, read.concurrency) == (("teams", "lake"), 90, 9)
    assert (read.leader_election, read.label_selector) == (False, "a=b")


def test_pod_says_who_it_is_and_how_it_is_reached() -> None:
    read = OperatorSettings.from_environment(
        {"POD_NAME": "operator-1", "POD_NAMESPACE": "headwater", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    )

    assert (read.identity, read.namespace, read.address) == ("operator-1", "headwater", "*")


def test_health_outside_of_a_cluster_is_served_locally_only() -> None:
    assert OperatorSettings.from_environment({}).address == "127.0.0.1"


def test_setting_wins_over_the_pod_and_loses_to_an_override() -> None:
    environment = {"POD_NAME": "pod", "POD_NAMESPACE": "pod", "HEADWATER_OPERATOR_IDENTITY": "me"}
    read = OperatorSettings.from_environment(environment | {"HEADWATER_OPERATOR_NAMESPACE": "here"}, port=1, identity=None)

    assert (read.identity, read.namespace, read.port) == ("me", "here", 1)


def test_all_faults_are_reported_at_once() -> None:
    environment = {
        "HEADWATER_OPERATOR_RESYNC": "soon",
        "HEADWATER_OPERATOR_CONCURRENCY": "0",
        "HEADWATER_OPERATOR_PORT": "70000",
        "HEADWATER_OPERATOR_LEADER_ELECTION": "perhaps",
        "HEADWATER_OPERATOR_ADDRESS": "",
        "HEADWATER_OPERATOR_LEASE_RENEW_DEADLINE": "15s",
        "HEADWATER_OPERATOR_LEASE_RETRY": "20s",
    }
    with pytest.raises(RefusedError) as refused:
        OperatorSettings.from_environment(environment | {"HEADWATER_OPERATOR_NAMESPACES": "a_b"})

    assert [name for name in (*environment, "a_b") if name not in str(refused.value)] == []


def test_cluster_has_a_name_only_where_somebody_chose_one() -> None:
    unnamed, empty, named = (
        OperatorSettings.from_environment(environment)
        for environment in ({}, {"HEADWATER_OPERATOR_CLUSTER": ""}, {"HEADWATER_OPERATOR_CLUSTER": "kubernetes"})
    )

    assert [one.cluster_name for one in (unnamed, empty, named)] == ["kubernetes"] * 3
    assert [one.is_cluster_named for one in (unnamed, empty, named)] == [False, False, True]


def test_leader_gives_up_before_another_takes_over() -> None:
    settings = OperatorSettings(lease_duration_seconds=10, lease_renew_deadline_seconds=10)

    assert settings.faults() == [
        "HEADWATER_OPERATOR_LEASE_RENEW_DEADLINE (10s) must be less than HEADWATER_OPERATOR_LEASE_DURATION (10s)"
    ]


def test_each_setting_has_a_purpose_and_a_variable() -> None:
    fields = dataclasses.fields(OperatorSettings)

    assert [field.name for field in fields if not field.metadata["purpose"]] == []
    assert len({operator_variable(field.name) for field in fields}) == len(fields)
