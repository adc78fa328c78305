"""Spark where it can run, the process itself where it cannot."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headwater.settings import Settings

__all__ = ["Engine", "find_engine"]


@dataclass(frozen=True, slots=True)
class Engine:
    """What runs a job; reads as ``spark (local[*])`` or ``process (Java is missing)``."""

    is_spark: bool
    reason: str

    def __str__(self) -> str:
        return f"{'spark' if self.is_spark else 'process'} ({self.reason})"


def find_engine(settings: Settings, *, environment: Mapping[str, str] | None = None) -> Engine:
    """The engine for jobs here, and why it is that one. Looks, and starts nothing."""
    environment = os.environ if environment is None else environment
    if settings.spark_master == "off":
        return Engine(False, "spark_master is off")
    if importlib.util.find_spec("pyspark") is None:
        return Engine(False, "pyspark is not installed: pip install 'headwater[spark]'")
    if not _has_java(environment):
        return Engine(False, "Java is missing")
    return Engine(True, settings.spark_master)


def _has_java(environment: Mapping[str, str]) -> bool:
    """As Spark's launcher looks for it: in JAVA_HOME if that is set, on the PATH otherwise."""
    if home := environment.get("JAVA_HOME"):
        return (Path(home) / "bin" / "java").is_file()
    return shutil.which("java", path=environment.get("PATH", os.defpath)) is not None
