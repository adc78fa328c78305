"""The Kubernetes API: connection, requests, and errors.

The only package that imports the `kubernetes` library, and only for credentials and connections. Bodies are
plain values. Knows neither realms nor the store: it takes paths, and returns the server's answer or raises an error of Headwater.
"""

from headwater_operator.kube.kube_api import (
    KINDS,
    ApiUnavailableError,
    KindPath,
    KubeApi,
    KubeTimeouts,
    kube_error,
    resource_path,
)
from headwater_operator.kube.kube_connection import (
    ClusterCredentials,
    KubeConnection,
    cluster_connection,
    connect_cluster,
    kubeconfig_connection,
    plain_connection,
)

__all__ = [
    "KINDS",
    "ApiUnavailableError",
    "ClusterCredentials",
    "KindPath",
    "KubeApi",
    "KubeConnection",
    "KubeTimeouts",
    "cluster_connection",
    "connect_cluster",
    "kube_error",
    "kubeconfig_connection",
    "plain_connection",
    "resource_path",
]
