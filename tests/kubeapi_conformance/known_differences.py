"""Where our server answers otherwise than the recorded one did, and why. These lists may only shrink."""

from __future__ import annotations

__all__ = ["LEFT_OUT", "LINES", "PLACES"]

_NO_ACCOUNTS = "everybody is let in here and may do everything: there are neither accounts nor rights"
_OPERATOR_WITHOUT_RIGHTS = (*range(1925, 1942), *range(1953, 1957))
_PLUGIN_WITHOUT_RIGHTS = (1559, 1560, 1564, 1567, 1570, 1573, *range(1576, 1585), 1587, 1589, 1590)

LEFT_OUT: dict[str, str] = {
    **{f"operator:{number}": _NO_ACCOUNTS for number in _OPERATOR_WITHOUT_RIGHTS},
    **{f"plugin:{number}": _NO_ACCOUNTS for number in _PLUGIN_WITHOUT_RIGHTS},
}
"""Lines that are not sent, because what they would change was not changed there."""

_BUDGET = "a budget of the chart stood in the recorded cluster, which nobody was recorded to make"
LINES: dict[str, str] = {
    "helm:983": "a real cluster has some eighty roles of its own, this one has none",
    "operator:2889": "most of the writes that it shows were dropped from the recording, being repeats",
    "plugin:1519": _BUDGET,
    "plugin:1520": "the recorded server was one of an OpenShift build, which makes an Event of its own when it is ready",
    "plugin:1534": _BUDGET,
}
"""Lines that are sent, and whose answers are not compared."""

_TYPES = "which fields of a built-in kind are owned one by one follows from its Go type, which is described here only in parts"
_COLUMNS = "tables of built-in kinds have the columns that kubectl shows by default, without descriptions"
_OWNED = r".*metadata\.managedFields\..*fieldsV1"
_TABLE = r"\.columnDefinitions|\.rows\.\d+\.cells"
PLACES: dict[tuple[str, str], str] = {
    ("configmaps", _OWNED): _TYPES,
    ("customresourcedefinitions", _OWNED): _TYPES,
    ("deployments", _OWNED): _TYPES,
    ("horizontalpodautoscalers", _OWNED): _TYPES,
    ("networkpolicies", _OWNED): _TYPES,
    ("poddisruptionbudgets", _OWNED): _TYPES,
    ("pods", _OWNED): _TYPES,
    ("services", _OWNED): _TYPES,
    ("clusterrolebindings", _TABLE): _COLUMNS,
    ("configmaps", _TABLE): _COLUMNS,
    ("deployments", _TABLE): _COLUMNS,
    ("events", _TABLE): _COLUMNS,
    ("pods", _TABLE): _COLUMNS,
    ("rolebindings", _TABLE): _COLUMNS,
    ("serviceaccounts", _TABLE): _COLUMNS,
    ("services", _TABLE): _COLUMNS,
    ("validatingadmissionpolicies", _TABLE): _COLUMNS,
    ("validatingadmissionpolicybindings", _TABLE): _COLUMNS,
    ("leases", r"\.spec\.renewTime"): "most renewals were dropped from the recording, so an older one stands here",
    ("selfsubjectaccessreviews", r"\.status\.reason"): "no right allows it, because everybody may do everything here",
    ("services", r"\.spec\.clusterIPs?"): "each cluster gives addresses of its own",
}
"""Members of answers by the resource and the start of what is said of them."""
