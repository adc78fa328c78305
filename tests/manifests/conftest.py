"""Manifest files, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent

import pytest

from headwater.reconcile import ManifestError, load_manifests
from headwater.reconcile.manifests import ManifestFault

Faults = Callable[[str], list[str]]

HEAD = "apiVersion: headwater.dev/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """A manifest file with this text."""

    def make(text: str, name: str = "x.yaml") -> Path:
        file = tmp_path / name
        file.write_text(dedent(text))
        return file

    return make


@pytest.fixture
def faults_of(write: Callable[..., Path], tmp_path: Path) -> Faults:
    """The faults of a file with this text, as a person reads them, with the folder taken away."""

    def load(text: str) -> list[str]:
        try:
            load_manifests(write(text))
        except ManifestError as error:
            assert all(isinstance(fault, ManifestFault) for fault in error.faults)
            return str(error).replace(f"{tmp_path}/", "").splitlines()
        return []

    return load


@pytest.fixture
def realm_faults(faults_of: Faults) -> Faults:
    """The faults of a Realm whose spec has these lines; the first of them is line 6."""
    return lambda spec: faults_of(HEAD.format(kind="Realm", name="acme") + "spec:\n" + indent(dedent(spec), "  "))


@pytest.fixture
def catalog_faults(faults_of: Faults) -> Faults:
    """The faults of a Catalog whose spec has these lines; the first of them is line 11, after a Realm."""
    realm = HEAD.format(kind="Realm", name="acme")
    catalog = HEAD.format(kind="Catalog", name="lake")
    return lambda spec: faults_of(f"{realm}---\n{catalog}spec:\n" + indent(dedent(spec), "  "))
