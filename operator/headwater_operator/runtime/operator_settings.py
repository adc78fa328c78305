"""The operator's own settings with their defaults; read from the environment, and validated all at once, like those of the core."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.errors import RefusedError
from headwater.settings import duration_text, read_variables, setting_faults, without

PREFIX = "HEADWATER_OPERATOR_"
EVERYWHERE, LOOPBACK = "*", "127.0.0.1"
UNNAMED_CLUSTER = "kubernetes"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def _seconds(default: float, purpose: str) -> Any:
    return dataclasses.field(default=default, metadata={"purpose": purpose, "unit": "seconds"})


def _count(default: int, purpose: str, unit: str = "") -> Any:
    return dataclasses.field(default=default, metadata={"purpose": purpose, "unit": unit})


def _text(default: str, purpose: str, shown: str = "") -> Any:
    """A text setting. ``shown`` is the documented default where it depends on the place where the operator runs."""
    return dataclasses.field(default=default, metadata={"purpose": purpose, "unit": "text", "shown": shown})


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """The settings of the operator, in addition to those of the core.

    Each field is an environment variable: ``HEADWATER_OPERATOR_`` and the field in capitals, without ``_SECONDS``.
    """

    namespaces: tuple[str, ...] = dataclasses.field(
        default=(),
        metadata={"purpose": "namespaces to look after, with commas between them; empty for all", "unit": "names"},
    )
    label_selector: str = _text("", "look after only resources with these labels; two installations may share a cluster so")
    namespace: str = _text("default", "namespace of the operator itself, where its Lease is", "the pod's, or `default`")
    identity: str = _text("operator", "name of this process, in the Lease and on Events", "the pod's, or the machine's")
    cluster: str = _text("", "name of this cluster, which no other one on the same store has; never change it", "`kubernetes`")
    server_url: str = _text("", "URL of the server for workloads in the cluster; in Secrets of Catalogs that name no other")
    resync_seconds: float = _seconds(300.0, "how often a resource is looked at when nothing happens")
    concurrency: int = _count(4, "resources worked on at the same time")
    writes_per_second: int = _count(50, "writes to the Kubernetes API, in the long run")
    write_burst: int = _count(100, "writes to the Kubernetes API at once after a quiet time")
    connect_timeout_seconds: float = _seconds(5.0, "how long to wait for a connection to the Kubernetes API")
    request_timeout_seconds: float = _seconds(30.0, "how long to wait for an answer of the Kubernetes API")
    leader_election: bool = dataclasses.field(
        default=True,
        metadata={"purpose": "let a Lease decide which of several operators acts; without it, run only one", "unit": ""},
    )
    lease_name: str = _text("headwater-operator", "name of the Lease")
    lease_duration_seconds: float = _seconds(15.0, "a Lease that stands still for this long is taken over")
    lease_renew_deadline_seconds: float = _seconds(10.0, "a leader that could not renew for this long gives up and ends")
    lease_renew_seconds: float = _seconds(2.0, "time between two renewals of the Lease")
    lease_retry_seconds: float = _seconds(1.0, "time between two looks at another's Lease, and after a failed renewal")
    address: str = _text(
        LOOPBACK, "where health and metrics are served; `*` for all addresses", "`*` in a pod, else `127.0.0.1`"
    )
    port: int = _count(8080, "port of health and metrics; 0 takes a free one")
    metrics_realms: int = _count(200, "realms with metrics of their own; the others share the label `_others_`")
    figures_seconds: float = _seconds(15.0, "time between two readings of the store's figures")
    watch_silence_seconds: float = _seconds(180.0, "a watch that says nothing for this long is dead")
    reconcile_limit_seconds: float = _seconds(600.0, "a reconcile that takes longer hangs")
    shutdown_seconds: float = _seconds(10.0, "how long running reconciles may take to end at SIGTERM")

    @property
    def cluster_name(self) -> str:
        """The cluster's name as realms record it for their manager."""
        return self.cluster or UNNAMED_CLUSTER

    @property
    def is_cluster_named(self) -> bool:
        """Whether the name was chosen; otherwise other clusters have the same."""
        return bool(self.cluster)

    @property
    def lease_duration_whole_seconds(self) -> int:
        """The lease duration in whole seconds, the unit of the Lease."""
        return max(1, round(self.lease_duration_seconds))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None, **overrides: Any) -> OperatorSettings:
        """Settings from ``HEADWATER_OPERATOR_*`` variables and from the pod's environment; ``overrides`` win.

        raises        RefusedError that names every value that is wrong, not only the first
        """
        environment = os.environ if environment is None else environment
        values, faults = read_variables(cls, environment, operator_variable)
        values = _surroundings(environment) | values
        values |= {name: value for name, value in overrides.items() if value is not None}
        settings = cls(**values)
        faults += settings.faults()
        if faults:
            raise RefusedError("settings of the operator: " + "; ".join(faults))
        return settings

    @classmethod
    def variables(cls) -> list[str]:
        """The environment variables of all settings of the operator."""
        return [operator_variable(field.name) for field in dataclasses.fields(cls)]

    def faults(self) -> list[str]:
        """All faults of these settings, each with the correction."""
        faults = setting_faults(self, operator_variable, may_be_zero=lambda field: field.name == "port")
        return [*faults.values(), *without(self, faults)._faults_together()]

    def _faults_together(self) -> list[str]:
        """The faults between several settings, and in their texts."""
        faults = []
        if not 0 <= self.port <= 65535:
            faults.append(f"{operator_variable('port')} must be from 0 to 65535, not {self.port}")
        for field_name in ("identity", "address"):
            if not getattr(self, field_name):
                faults.append(f"{operator_variable(field_name)} must not be empty")
        if self.server_url and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", self.server_url):
            faults.append(f"{operator_variable('server_url')} must be a URL such as https://headwater.example.org")
        for name in (*self.namespaces, self.namespace):
            if not _NAME.fullmatch(name):
                faults.append(f"{name!r} is not the name of a namespace: lower-case letters, digits and hyphens, up to 63")
        return faults + self._faults_of_lease()

    def _faults_of_lease(self) -> list[str]:
        """The faults of the lease times: a leader must give up before another takes over, after more than one attempt."""
        order = ("lease_duration_seconds", "lease_renew_deadline_seconds", "lease_renew_seconds")
        faults = [
            f"{operator_variable(smaller)} ({duration_text(getattr(self, smaller))}) must be less than"
            f" {operator_variable(larger)} ({duration_text(getattr(self, larger))})"
            for larger, smaller in itertools.pairwise(order)
            if getattr(self, smaller) >= getattr(self, larger)
        ]
        if self.lease_retry_seconds >= self.lease_renew_deadline_seconds:
            faults.append(f"{operator_variable('lease_retry')} must be less than {operator_variable('lease_renew_deadline')}")
        return faults


def operator_variable(name: str) -> str:
    """The environment variable of a setting: ``HEADWATER_OPERATOR_RESYNC`` of ``resync_seconds``."""
    return PREFIX + name.removesuffix("_seconds").upper()


def _surroundings(environment: Mapping[str, str]) -> dict[str, Any]:
    """The defaults that come from the pod or the machine."""
    is_pod = bool(environment.get("KUBERNETES_SERVICE_HOST"))
    said = {
        "namespace": environment.get("POD_NAMESPACE"),
        "identity": environment.get("POD_NAME") or socket.gethostname(),
        "address": EVERYWHERE if is_pod else None,
    }
    return {name: value for name, value in said.items() if value}
