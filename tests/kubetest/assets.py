"""A real kube-apiserver on a real etcd, started as envtest does: from the folder that KUBEBUILDER_ASSETS names.

There is no kubelet and no scheduler: nothing runs in it. Where the folder has no kube-controller-manager, a deleted namespace stays
for ever, and nobody collects what belonged to what is gone. Where it has one, these controllers of it run; those of Deployments do
not, so that a test can say by itself how a Deployment stands. The API server puts finalizers on volumes and their claims, which the last
two take off.
"""

from __future__ import annotations

import secrets
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from free_ports import free_port
from kubetest.emulated import write_kubeconfig
from kubetest.processes import Process, clean_environment, start_process
from kubetest.waits import wait_for

__all__ = ["ASSETS", "Assets", "start_assets"]

ASSETS = "KUBEBUILDER_ASSETS"
PROGRAMS = ("kube-apiserver", "etcd", "kubectl")
MANAGER = "kube-controller-manager"
CONTROLLERS = (
    "namespace-controller",
    "garbage-collector-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
)
SECONDS_TO_START = 60


@dataclass(frozen=True)
class Assets:
    kubeconfig: Path
    apiserver: Process
    etcd: Process
    manager: Process | None = None
    control: str | None = None  # a real server fails only when it wants to

    @property
    def has_controllers(self) -> bool:
        return self.manager is not None

    def stop(self) -> None:
        for process in filter(None, (self.manager, self.apiserver, self.etcd)):
            process.popen.terminate()
            try:
                process.popen.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()

    def pause(self) -> None:
        self.apiserver.pause()

    def resume(self) -> None:
        self.apiserver.resume()


def start_assets(assets: Path, folder: Path, *, with_controllers: bool = True) -> Assets:
    """``with_controllers`` starts the kube-controller-manager, where there is one."""
    missing = [name for name in PROGRAMS if not (assets / name).exists()]
    assert not missing, f"{ASSETS}={assets} has no {', '.join(missing)}"
    etcd, client_url = _start_etcd(assets, folder)
    try:
        started = _start_apiserver(assets, folder, etcd, client_url)
    except BaseException:
        etcd.kill()
        raise
    if with_controllers and (assets / MANAGER).exists():
        return replace(started, manager=_start_manager(assets, folder, started.kubeconfig))
    return started


def _start_etcd(assets: Path, folder: Path) -> tuple[Process, str]:
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    arguments = [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
    ]
    etcd = _start(assets, "etcd", arguments, folder)
    _wait_until(etcd, lambda: _answers(f"{client}/health", None, ""))
    return etcd, client


def _start_apiserver(assets: Path, folder: Path, etcd: Process, etcd_url: str) -> Assets:
    certificate, key = _make_certificate(folder)
    token, port = secrets.token_hex(16), free_port()
    tokens = folder / "tokens.csv"
    tokens.write_text(f"{token},tests,tests,system:masters\n", encoding="utf-8")
    tokens.chmod(0o600)
    arguments = [
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://127.0.0.1",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--disable-admission-plugins=ServiceAccount",  # nobody makes service accounts and their tokens here
        "--allow-privileged=true",
    ]
    apiserver = _start(assets, "kube-apiserver", arguments, folder)
    url = f"https://127.0.0.1:{port}"
    try:
        _wait_until(apiserver, lambda: _answers(f"{url}/readyz", certificate, token))
    except BaseException:
        apiserver.kill()
        raise
    kubeconfig = write_kubeconfig(folder / "kubeconfig", url, authority=certificate, token=token)
    return Assets(kubeconfig, apiserver, etcd)


def _start_manager(assets: Path, folder: Path, kubeconfig: Path) -> Process:
    arguments = [
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(CONTROLLERS)}",
        "--leader-elect=false",
        "--secure-port=0",  # nobody asks it anything
    ]
    return _start(assets, MANAGER, arguments, folder)


def _make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate that is its own authority, for this machine alone."""
    openssl = shutil.which("openssl")
    assert openssl, f"{ASSETS} needs openssl on the PATH, to make a certificate for the API server"
    certificate, key = folder / "tests.crt", folder / "tests.key"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=headwater-tests"),
            *("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            *("-addext", "keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    key.chmod(0o600)
    return certificate, key


def _start(assets: Path, name: str, arguments: list[str], folder: Path) -> Process:
    log = folder / f"{name}.log"
    command = [str(assets / name), *arguments]
    return Process(name, start_process(name, command, log=log, environment=clean_environment(), folder=folder), log)


def _wait_until(process: Process, is_so: Callable[[], bool]) -> None:
    wait_for(lambda: is_so() or not process.is_running, seconds=SECONDS_TO_START, every=0.1, why=process.last_words)
    assert process.is_running, f"{process.name} ended with exit code {process.popen.returncode}\n{process.last_words()}"


def _answers(url: str, certificate: Path | None, token: str) -> bool:
    context = ssl.create_default_context(cafile=str(certificate)) if certificate else None
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=5, context=context) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
