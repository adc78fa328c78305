"""Logging of worker processes: that of all long-lived processes, and what Celery needs besides."""

from __future__ import annotations

import logging
import warnings

from headwater.logs import log_to_stderr
from headwater.settings import Settings

__all__ = ["configure_logs"]


def configure_logs(settings: Settings, *, level: int = logging.INFO) -> None:
    """Set up this process. Lines carry task, kind, realm and catalog."""
    log_to_stderr(settings, package="headwater_workers", level=level)
    # Celery warns of every worker of root's; what it is afraid of is pickle, and only JSON is accepted.
    warnings.filterwarnings("ignore", message="(?s).*superuser privileges")
