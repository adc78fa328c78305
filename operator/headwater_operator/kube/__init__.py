"""The Kubernetes API: how to reach it, how to ask it, and what its answers mean.

The only room that imports the `kubernetes` library, and of that only what finds and renews credentials and keeps connections. Bodies are
plain values. Knows neither realms nor the store: it takes paths, and gives back what the server said or an error of Headwater's tree.
"""

from headwater_operator.kube.client import KubeApi, Timeouts
from headwater_operator.kube.connecting import (
    ClusterCredentials,
    Connection,
    cluster_connection,
    connect,
    kubeconfig_connection,
    plain_connection,
)
from headwater_operator.kube.faults import ApiUnavailableError, error_of
from headwater_operator.kube.paths import KINDS, KindPath, resource_path

__all__ = [
    "KINDS",
    "ApiUnavailableError",
    "ClusterCredentials",
    "Connection",
    "KindPath",
    "KubeApi",
    "Timeouts",
    "cluster_connection",
    "connect",
    "error_of",
    "kubeconfig_connection",
    "plain_connection",
    "resource_path",
]
