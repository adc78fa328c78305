"""Headwater on the cluster of your kubeconfig, from nothing and back: ``make demo-kube CONFIRM_CONTEXT=<name of the context>``.

It makes the namespace headwater-demo, installs the chart there, applies examples/kubernetes, waits, shows what came of it, and takes
everything away again, however it ended. Custom resource definitions that were there before are left alone, and so is everything in other
namespaces. The images have to be where the cluster finds them: VALUES=<file> gives the chart further values, for example a registry.

    LOCAL=1    installs only what the API server needs, and runs operator and worker here as processes of your own
    APPLY=1    applies what the chart renders by kubectl, where helm may not be used
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".demo" / "kubernetes"
CHART = Path("charts/headwater")
EXAMPLES = Path("examples/kubernetes")
NAMESPACE = "headwater-demo"
MARK = {"headwater.dev/demo": "true"}
CRDS = ("realms.headwater.dev", "catalogs.headwater.dev")
ADMISSION = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
DATABASE = "sqlite:////var/lib/headwater/headwater.db"


def main() -> int:
    options = read_options()
    cluster = Cluster(confirmed_context())
    started = time.monotonic()
    try:
        with ExitStack() as cleaning:
            run(cluster, options, cleaning)
            cluster.say(f"Done in {time.monotonic() - started:.0f} seconds; now everything is taken away again.")
    except Failed as failure:
        print(f"\ndemo-kube: {failure}", file=sys.stderr)
        return 1
    return 0


def run(cluster: Cluster, options: argparse.Namespace, cleaning: ExitStack) -> None:
    """Each thing that is made has its removal put on the pile first, so that what was half made goes, too."""
    cluster.say("1. A namespace for the demo")
    cleaning.enter_context(namespace(cluster))
    cleaning.enter_context(definitions(cluster))

    cluster.say("2. Headwater" + (", as processes on this machine" if options.local else ""))
    if options.local:
        cleaning.enter_context(admission(cluster))
        cleaning.enter_context(local_processes(cluster, options.folder))
    else:
        cleaning.enter_context(installation(cluster, values=options.values, by_kubectl=options.apply))
    cleaning.callback(delete_resources, cluster)

    cluster.say("3. The examples")
    cluster.kubectl("apply", "-f", EXAMPLES)
    cluster.kubectl("wait", "--for=condition=Ready", "realms,catalogs", "--all", "--timeout=180s")

    cluster.say("4. What there is now")
    cluster.kubectl("get", "realms,catalogs", "-o", "wide")
    cluster.kubectl("get", "events", "--sort-by=.metadata.creationTimestamp")
    cluster.kubectl("get", "secrets", "-l", "app.kubernetes.io/managed-by=headwater-operator")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run Headwater's examples on the cluster of your kubeconfig.")
    parser.add_argument("--local", action="store_true", help="run operator and worker on this machine")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where --local keeps its store and logs")
    parser.add_argument("--apply", action="store_true", help="apply what the chart renders by kubectl")
    parser.add_argument("--values", type=Path, help="further values for the chart")
    return parser.parse_args()


def confirmed_context() -> str:
    """The current context, if whoever started this named it."""
    done = subprocess.run([program("kubectl"), "config", "current-context"], capture_output=True, text=True, check=False)
    context = done.stdout.strip()
    if done.returncode != 0 or not context:
        raise SystemExit(
            "demo-kube: your kubeconfig points at no cluster: choose one, for example by `kubectl config use-context`"
        )
    if os.environ.get("CONFIRM_CONTEXT") != context:
        raise SystemExit(
            f"demo-kube: this would install Headwater in the cluster of your current context, {context}; "
            f"say that you mean it: make demo-kube CONFIRM_CONTEXT={context}"
        )
    return context


# What is made, each with its end


@contextmanager
def namespace(cluster: Cluster) -> Iterator[None]:
    """Never one that was there before, unless an earlier demo left it behind."""
    there = cluster.find("namespace", NAMESPACE)
    if there is not None and not MARK.items() <= there["metadata"].get("labels", {}).items():
        raise Failed(f"there is a namespace {NAMESPACE} already, and no demo made it: take it away, or look what it is for")
    try:
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": MARK}})
        yield
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false", check=False)


@contextmanager
def definitions(cluster: Cluster) -> Iterator[None]:
    """The kinds Realm and Catalog: deleted at the end only if they were made here, since deleting them deletes every such resource."""
    made = [name for name in CRDS if cluster.find("crd", name) is None]
    if len(made) != len(CRDS):
        print("Custom resource definitions are there already: they are used as they are, and stay.")
    try:
        for name in made:
            cluster.kubectl("apply", "-f", f"crds/headwater.dev_{name.partition('.')[0]}.yaml")
        cluster.kubectl("wait", "--for=condition=Established", *(f"crd/{name}" for name in CRDS), "--timeout=60s")
        yield
    finally:
        if made:
            cluster.kubectl("delete", "crd", *made, "--ignore-not-found", "--timeout=60s", check=False)


@contextmanager
def admission(cluster: Cluster) -> Iterator[None]:
    """The policy that refuses to delete what is protected."""
    rendered = [body for body in cluster.rendered(()) if body["kind"] in ADMISSION]
    try:
        cluster.apply(*rendered)
        yield
    finally:
        cluster.delete(rendered)


@contextmanager
def local_processes(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Operator and worker as processes on this machine, with their store and logs in a folder that is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    environment = os.environ | {
        "KUBECONFIG": str(cluster.own_kubeconfig(folder / "kubeconfig")),
        "HEADWATER_STORE": f"sqlite:///{folder}/headwater.db",
        "HEADWATER_OPERATOR_NAMESPACES": NAMESPACE,
        "HEADWATER_OPERATOR_NAMESPACE": NAMESPACE,
        "HEADWATER_OPERATOR_PORT": "0",
        "HEADWATER_SPARK_MASTER": "off",
    }
    commands = {"operator": [beside("headwater-operator"), "run"], "worker": [beside("headwater"), "worker"]}
    with ExitStack() as running:
        for name, command in commands.items():
            log = running.enter_context((folder / f"{name}.log").open("w"))
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=ROOT, start_new_session=True)
            running.callback(end, process)
            print(f"$ {Path(command[0]).name} {command[1]} &    # its log is {log.name}", flush=True)
        yield


@contextmanager
def installation(cluster: Cluster, *, values: Path | None, by_kubectl: bool) -> Iterator[None]:
    """The chart, with a volume for the database and the embedded broker."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    cluster.apply(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "headwater-data"}, "spec": claim},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "headwater-store"}, "stringData": {"url": DATABASE}},
    )
    further = ("--values", str(values)) if values else ()
    if by_kubectl:
        rendered = [body for body in cluster.rendered(further) if not is_hook(body)]
        try:
            cluster.apply(*rendered)
            for name in (body["metadata"]["name"] for body in rendered if body["kind"] == "Deployment"):
                cluster.kubectl("rollout", "status", f"deployment/{name}", "--timeout=300s")
            yield
        finally:
            cluster.delete(rendered)
    else:
        try:
            cluster.helm("install", NAMESPACE, CHART, *cluster.chart_values(further), "--wait", "--timeout", "5m")
            yield
        finally:
            cluster.helm("uninstall", NAMESPACE, "--ignore-not-found", "--no-hooks", "--wait", check=False)


def is_hook(body: dict[str, Any]) -> bool:
    return "helm.sh/hook" in body["metadata"].get("annotations", {})


def delete_resources(cluster: Cluster) -> None:
    """First catalogs, then realms; nothing is purged, since the store goes, too. What nobody lets go within a minute is let go by hand."""
    for kind in ("catalogs", "realms"):
        for resource in cluster.quiet("get", kind, "-o", "name").split():
            letting_go = {"spec": {"deletionPolicy": "Retain", "deletionProtection": False}}
            cluster.kubectl("patch", resource, "--type=merge", "-p", json.dumps(letting_go), check=False)
        cluster.kubectl("delete", kind, "--all", "--timeout=60s", check=False)
        for resource in cluster.quiet("get", kind, "-o", "name").split():
            cluster.kubectl("patch", resource, "--type=merge", "-p", '{"metadata": {"finalizers": null}}', check=False)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


# The cluster


class Failed(Exception):
    """The demo cannot go on; the message says why."""


@dataclass(frozen=True)
class Cluster:
    """Always the context that was confirmed, even if somebody chooses another one meanwhile."""

    context: str

    def say(self, text: str) -> None:
        print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)

    def kubectl(self, *arguments: object, check: bool = True, text: str | None = None) -> None:
        """Run it as a user would type it, in the demo's namespace."""
        self._run("kubectl", self._kubectl(arguments), arguments, check=check, text=text)

    def helm(self, *arguments: object, check: bool = True) -> None:
        command = [program("helm"), "--kube-context", self.context, "--namespace", NAMESPACE, *map(str, arguments)]
        self._run("helm", command, arguments, check=check)

    def quiet(self, *arguments: object) -> str:
        return subprocess.run(self._kubectl(arguments), capture_output=True, text=True, check=False).stdout

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        found = self.quiet("get", kind, name, "--ignore-not-found", "-o", "json")
        return json.loads(found) if found.strip() else None

    def apply(self, *bodies: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", text="\n---\n".join(json.dumps(body) for body in bodies))

    def delete(self, bodies: Sequence[dict[str, Any]]) -> None:
        text = "\n---\n".join(json.dumps(body) for body in bodies)
        self.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", check=False, text=text)

    def chart_values(self, further: Sequence[str] = ()) -> list[str]:
        values = {
            "crds.enabled": "false",
            "store.existingSecret": "headwater-store",
            "store.volume.existingClaim": "headwater-data",
            "watch.namespaces[0]": NAMESPACE,
            "spark.mode": "off",
        }
        chosen = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
        return [*chosen, *further]

    def rendered(self, further: Sequence[str]) -> list[dict[str, Any]]:
        command = [program("helm"), "template", NAMESPACE, str(CHART), "--namespace", NAMESPACE, *self.chart_values(further)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode != 0:
            raise Failed(done.stderr.strip())
        return [body for body in yaml.safe_load_all(done.stdout) if body]

    def own_kubeconfig(self, file: Path) -> Path:
        """The confirmed context alone, for processes that run beside this one."""
        words = ("config", "view", "--minify", "--flatten", "-o", "yaml")
        file.touch(mode=0o600)
        file.write_text(self.quiet(*words), encoding="utf-8")
        return file

    def _kubectl(self, arguments: Sequence[object]) -> list[str]:
        return [program("kubectl"), "--context", self.context, "--namespace", NAMESPACE, *map(str, arguments)]

    def _run(
        self, shown: str, command: list[str], arguments: Sequence[object], *, check: bool, text: str | None = None
    ) -> None:
        words = " ".join(str(argument) for argument in arguments)
        print(f"\n$ {shown} {words}", flush=True)
        done = subprocess.run(command, input=text, text=True, check=False, cwd=ROOT)
        if check and done.returncode != 0:
            raise Failed(f"`{shown} {words}` ended with exit code {done.returncode}")


def program(name: str) -> str:
    unpacked = ROOT / ".tools" / name
    found = str(unpacked) if unpacked.exists() else shutil.which(name)
    if found is None:
        raise SystemExit(f"demo-kube: {name} is missing: `scripts/setup.sh kubectl` unpacks it")
    return found


def beside(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is taken away then, too
    sys.exit(main())
