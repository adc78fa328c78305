"""What Argo CD makes of a resource by the chart's health check: the script is run by Lua 5.1, the version that Argo CD has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lupa.lua51 import LuaRuntime

__all__ = ["HEALTHS", "argocd_health"]

SCRIPT = Path(__file__).parents[2] / "charts" / "headwater" / "files" / "argocd-health.lua"
HEALTHS = ("Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown")
"""All that Argo CD knows."""


def argocd_health(resource: Mapping[str, Any]) -> tuple[str, str]:
    """Health and message. The script sees the resource, and of Lua's libraries no more than ``ipairs``.

    source        argo-cd.readthedocs.io, "Resource Health": the script is given ``obj`` and returns a table with status and message
    """
    lua = LuaRuntime(unpack_returned_tuples=True, register_eval=False, register_builtins=False)
    run = lua.eval("function(script, obj) return setfenv(loadstring(script), {ipairs = ipairs, obj = obj})() end")
    plain = json.loads(json.dumps(resource))
    health = run(SCRIPT.read_text(encoding="utf-8"), lua.table_from(plain, recursive=True))
    return str(health.status), str(health.message)
