"""Documents of kinds that other projects define, held against the validators that npm has of them.

They need node, npm and the npm registry; where one of them is not there this is skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rendered_chart import render
from test_rendered_documents import FOREIGN

pytestmark = pytest.mark.long

GATEWAY, PROMETHEUS, KEDA = "gateway-api@2.0.0", "prometheus-operator@6.0.0", "keda@2.0.0"
MONITORING = "ComGithubPrometheusOperatorPrometheusOperatorPkgApisMonitoringV1"
VALIDATORS = {
    "HTTPRoute": (GATEWAY, "IoK8sSigsGatewayApiApisV1HTTPRoute"),
    "ServiceMonitor": (PROMETHEUS, f"{MONITORING}ServiceMonitor"),
    "PrometheusRule": (PROMETHEUS, f"{MONITORING}PrometheusRule"),
    "ScaledObject": (KEDA, "ComGithubKedacoreKedaV2ApisKedaV1alpha1ScaledObject"),
}
SCRIPT = """
import fs from "node:fs";
const faults = [];
for (const [path, document] of JSON.parse(fs.readFileSync(0))) {
  const { validate } = await import(path);
  faults.push(validate(document) ? [] : validate.errors.map((error) => `${error.instancePath} ${error.keyword}`));
}
console.log(JSON.stringify(faults));
"""


@pytest.fixture(scope="module")
def validators(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the validators, from the npm registry."""
    node, npm, folder = shutil.which("node"), shutil.which("npm"), tmp_path_factory.mktemp("validators")
    if node is None or npm is None:
        pytest.skip("node or npm is not there: this runs where both are on the PATH, such as from Debian's nodejs and npm")
    (folder / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    (folder / "validate.js").write_text(SCRIPT, encoding="utf-8")
    packages = [f"@kubernetes-models/{package}" for package in (GATEWAY, PROMETHEUS, KEDA)]
    install = [npm, "install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--fetch-retries=0", *packages]
    got = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    if got.returncode != 0:
        pytest.skip(f"npm cannot get {', '.join(packages)}: this runs where the npm registry is reachable")
    return folder


def faults_of(documents: list[dict[str, Any]], folder: Path) -> list[list[str]]:
    """What is wrong with each document."""
    told = []
    for document in documents:
        package, validator = VALIDATORS[document["kind"]]
        told.append([f"./node_modules/@kubernetes-models/{package.partition('@')[0]}/_schemas/{validator}.js", document])
    run = subprocess.run(
        ["node", "validate.js"], cwd=folder, input=json.dumps(told), capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stderr
    faults: list[list[str]] = json.loads(run.stdout)
    return faults


def test_validators_know_the_foreign_kinds(validators: Path) -> None:
    documents = [document for document in render("everything").documents if document["kind"] in FOREIGN]
    assert {document["kind"] for document in documents} == FOREIGN == set(VALIDATORS)

    assert faults_of(documents, validators) == [[] for _ in documents]


def test_validators_find_what_is_wrong(validators: Path) -> None:
    (route,) = render("everything").of("HTTPRoute")
    wrong = {**route, "spec": {**route["spec"], "rules": [{"backendRefs": [{"name": "a", "port": "many"}]}]}}

    assert faults_of([wrong], validators) != [[]]
