"""The Kubernetes API: how to reach it, how to ask it, and what its answers mean.

The only room that imports the `kubernetes` library, and of that only what finds and renews credentials and keeps connections. Bodies are
plain values. Knows neither realms nor the store: it takes paths, and gives back what the server said or an error of Headwater's tree.
"""

from headwater_operator.kube.kube_api import KINDS, KindPath, KubeApi, KubeTimeouts, resource_path
from headwater_operator.kube.kube_connection import (
    ClusterCredentials,
    KubeConnection,
    cluster_connection,
    connect,
    kubeconfig_connection,
    plain_connection,
)
from headwater_operator.kube.kube_errors import ApiUnavailableError, kube_error

__all__ = [
    "KINDS",
    "ApiUnavailableError",
    "ClusterCredentials",
    "KindPath",
    "KubeApi",
    "KubeConnection",
    "KubeTimeouts",
    "cluster_connection",
    "connect",
    "kube_error",
    "kubeconfig_connection",
    "plain_connection",
    "resource_path",
]
