"""The connection to a cluster and its credentials: a pod's service account, a kubeconfig, or a bare address for tests."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException, load_kube_config
from kubernetes.config.incluster_config import SERVICE_CERT_FILENAME, SERVICE_TOKEN_FILENAME, InClusterConfigLoader

from headwater.errors import RefusedError

DEFAULT_KUBECONFIG = "~/.kube/config"
POOL_SIZE = 16
_InClusterConfigLoader: Any = InClusterConfigLoader  # the library has types only in parts
_load_kube_config: Any = load_kube_config
_QUOTED = re.compile(r"[\[{(].*", re.DOTALL)


@dataclass(frozen=True, slots=True, repr=False)
class ClusterCredentials:
    """The credentials that another client needs to connect as this one does. Files are paths; ``scheme`` and ``token`` make the header."""

    server: str
    scheme: str = ""
    token: str = ""
    authority_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    proxy: str | None = None
    is_insecure: bool = False


class KubeConnection:
    """Connections to one API server, kept open and shared by threads, with credentials that are renewed as they run out.

    load          gives a configuration read anew: files, tokens, certificates, what an exec plugin says
    """

    def __init__(self, load: Callable[[], Configuration]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._configuration, self._client = self._opened()

    @property
    def host(self) -> str:
        return str(self._configuration.host).rstrip("/")

    def pool(self) -> urllib3.PoolManager:
        pool: urllib3.PoolManager = self._client.rest_client.pool_manager
        return pool

    def headers(self) -> dict[str, str]:
        """The current credentials as headers. A pod's token is read again from its file when it is a minute old."""
        with self._lock:  # the library's renewal is not thread-safe
            credential = self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        return {"Authorization": credential} if credential else {}

    def credentials(self) -> ClusterCredentials:
        """The current credentials, for the client of the watches."""
        scheme, _, token = self.headers().get("Authorization", "").partition(" ")
        configuration, pool = self._configuration, self.pool()
        return ClusterCredentials(
            server=self.host,
            scheme=scheme.capitalize(),
            token=token,
            authority_file=configuration.ssl_ca_cert,
            certificate_file=configuration.cert_file,
            key_file=configuration.key_file,
            proxy=pool.proxy.url if isinstance(pool, urllib3.ProxyManager) and pool.proxy is not None else None,
            is_insecure=not configuration.verify_ssl,
        )

    def renew(self, refused: Mapping[str, str]) -> None:
        """Reload the credentials after the server refused these ones; a thread that comes late finds it done."""
        if self.headers() != refused:
            return
        with self._lock:
            self._configuration, self._client = self._opened()

    def close(self) -> None:
        self.pool().clear()

    def _opened(self) -> tuple[Configuration, ApiClient]:
        configuration = self._load()
        configuration.connection_pool_maxsize = POOL_SIZE
        configuration.keep_alive = True
        return configuration, ApiClient(configuration)


def connect_cluster(context: str | None = None, environment: Mapping[str, str] | None = None) -> KubeConnection:
    """Connect by a pod's service account, or by the kubeconfig that ``KUBECONFIG`` names, or by the one in the home folder.

    context       of the kubeconfig; naming one, or setting KUBECONFIG, wins over the service account
    raises        RefusedError when there is nothing to connect with
    """
    environment = os.environ if environment is None else environment
    if context is None and not environment.get("KUBECONFIG") and environment.get("KUBERNETES_SERVICE_HOST"):
        return cluster_connection(environment)
    return kubeconfig_connection(environment.get("KUBECONFIG") or DEFAULT_KUBECONFIG, context)


def cluster_connection(
    environment: Mapping[str, str], *, token: str = SERVICE_TOKEN_FILENAME, certificate: str = SERVICE_CERT_FILENAME
) -> KubeConnection:
    """Connect as the service account whose token the cluster keeps fresh in a file."""

    def load() -> Configuration:
        configuration = Configuration()
        try:
            loader = _InClusterConfigLoader(token, certificate, environ=environment)
            loader.load_and_set(configuration)
        except (ConfigException, OSError) as fault:
            raise RefusedError(f"this pod's service account cannot be used: {fault}") from fault
        return configuration

    return KubeConnection(load)


def kubeconfig_connection(paths: str, context: str | None = None) -> KubeConnection:
    """Connect by a kubeconfig: tokens, client certificates, exec plugins. Several files are merged, as kubectl does."""

    def load() -> Configuration:
        if not any(Path(path).expanduser().exists() for path in paths.split(os.pathsep) if path):
            raise RefusedError(f"no cluster to talk to: there is no kubeconfig at {paths}, and this is no pod")
        configuration = Configuration()
        try:
            _load_kube_config(paths, context=context, client_configuration=configuration, persist_config=False)
        except ConfigException as fault:
            # The library's messages quote whole entries of the file, with their tokens.
            raise RefusedError(f"the kubeconfig {paths} cannot be used: {_QUOTED.sub('…', str(fault))}") from None
        except (yaml.YAMLError, OSError, KeyError, TypeError, ValueError) as fault:
            raise RefusedError(f"the kubeconfig {paths} cannot be read ({type(fault).__name__})") from None
        return configuration

    return KubeConnection(load)


def plain_connection(url: str) -> KubeConnection:
    """Connect to an address without credentials, such as that of ``kubectl proxy``."""
    return KubeConnection(lambda: Configuration(host=url))
