"""What helm makes of the chart, as plain values that tests can ask."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

__all__ = [
    "CHART",
    "KUBERNETES",
    "NAMESPACE",
    "RELEASE",
    "ROOT",
    "VALUE_SETS",
    "Pod",
    "Rendered",
    "helm",
    "refusal",
    "render",
    "render_notes",
]

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "headwater"
KUBERNETES = ("1.30", "1.37")
"""The oldest and the newest that are supported."""
RELEASE, NAMESPACE = "lake", "platform"
MONITORING = ("--api-versions", "monitoring.coreos.com/v1")
VALUE_SETS = tuple(sorted(file.name.removesuffix("-values.yaml") for file in (CHART / "ci").glob("*-values.yaml")))
Document = Mapping[str, Any]


@dataclass(frozen=True)
class Pod:
    """A pod that some document leads to; ``lasts`` unless it ends by itself."""

    name: str
    metadata: Document
    spec: Document
    lasts: bool

    @property
    def containers(self) -> list[Document]:
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]

    @property
    def container(self) -> Document:
        """The one that the pod is there for, before its sidecars."""
        main: Document = self.spec["containers"][0]
        return main

    def sidecar(self, name: str) -> Document:
        (named,) = [container for container in self.containers if container["name"] == name]
        return named

    @property
    def environment(self) -> dict[str, Any]:
        return {one["name"]: one.get("value", one.get("valueFrom")) for one in self.container.get("env", [])}


@dataclass(frozen=True)
class Rendered:
    documents: tuple[Document, ...]

    def of(self, kind: str) -> list[Document]:
        return [document for document in self.documents if document["kind"] == kind]

    def one(self, kind: str, ending: str = "") -> Document:
        (found,) = [document for document in self.of(kind) if document["metadata"]["name"].endswith(ending)]
        return found

    def pods(self) -> Iterator[Pod]:
        for document in self.documents:
            match document["kind"]:
                case "Deployment" | "Job":
                    template = document["spec"]["template"]
                    yield Pod(document["metadata"]["name"], template["metadata"], template["spec"], document["kind"] != "Job")
                case "Pod":
                    yield Pod(document["metadata"]["name"], document["metadata"], document["spec"], lasts=False)
                case "ConfigMap" if "executor.yaml" in document["data"]:
                    template = yaml.safe_load(document["data"]["executor.yaml"])
                    yield Pod("executor", template["metadata"], template["spec"], lasts=False)

    def pod(self, ending: str) -> Pod:
        (found,) = [pod for pod in self.pods() if pod.name.endswith(ending)]
        return found


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    unpacked = ROOT / ".tools" / "helm"
    program = str(unpacked) if unpacked.exists() else shutil.which("helm")
    assert program, "helm is missing: `scripts/setup.sh kubectl` unpacks it into .tools"
    nobody = {"KUBECONFIG": os.devnull, "HOME": "/nonexistent", "PATH": os.environ["PATH"]}
    return subprocess.run([program, *arguments], check=False, capture_output=True, text=True, env=nobody)


@cache
def render(values: str = "default", *settings: str, kubernetes: str = KUBERNETES[-1], monitoring: bool = True) -> Rendered:
    """The documents that a set of values in the folder ``ci`` gives, changed by ``--set`` of each ``settings``."""
    more = [word for setting in settings for word in ("--set", setting)]
    done = _template(values, "--kube-version", kubernetes, *(MONITORING if monitoring else ()), *more)
    assert done.returncode == 0, done.stderr
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return Rendered(tuple(document for document in yaml.load_all(done.stdout, loader) if document))


def refusal(*settings: str, values: str = "default") -> str:
    """Why helm will not have these values."""
    done = _template(values, *[word for setting in settings for word in ("--set", setting)])
    assert done.returncode != 0, f"{settings} were accepted"
    return done.stderr


def render_notes(values: str = "default", *settings: str) -> str:
    """What helm prints after an installation."""
    given = [word for setting in settings for word in ("--set", setting)]
    done = _helm_with(values, "install", "--dry-run=client", "--hide-secret", *given)
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("\nNOTES:\n")[2]


def _template(values: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return _helm_with(values, "template", *arguments)


def _helm_with(values: str, word: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    file = str(CHART / "ci" / f"{values}-values.yaml")
    return helm(word, RELEASE, str(CHART), "--namespace", NAMESPACE, "--values", file, *arguments)
