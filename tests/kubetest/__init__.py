"""A cluster to test against, and what is run on it: the API server, kubectl, the operator and workers, each a real process.

This room knows how they are started, asked and ended; it knows nothing of what is tested. The fixtures stand in ``kube_fixtures``.
"""

from kubetest.assets import start_assets
from kubetest.cluster import Cluster, Namespace, start_cluster
from kubetest.processes import Operator, Process, Worker, start_operator, start_worker
from kubetest.waits import wait_for

__all__ = [
    "Cluster",
    "Namespace",
    "Operator",
    "Process",
    "Worker",
    "start_assets",
    "start_cluster",
    "start_operator",
    "start_worker",
    "wait_for",
]
