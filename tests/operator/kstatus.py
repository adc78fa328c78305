"""What kstatus makes of a resource: the generic rules of sigs.k8s.io/cli-utils, by which `helm --wait`, Flux and kpt judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["kstatus"]


def kstatus(resource: Mapping[str, Any]) -> str:
    """One of Terminating, InProgress, Failed and Current.

    source        pkg/kstatus of github.com/kubernetes-sigs/cli-utils: README.md, "Conditions" and "The Ready Condition"
    """
    metadata, status = resource["metadata"], resource.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if status.get("observedGeneration", metadata["generation"]) != metadata["generation"]:
        return "InProgress"
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    for one in status.get("conditions") or ():
        if one["type"] in ("Reconciling", "Stalled") and one["status"] == "True":
            return "InProgress" if one["type"] == "Reconciling" else "Failed"
    return "Current" if conditions.get("Ready", "True") == "True" else "InProgress"
