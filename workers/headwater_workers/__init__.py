"""Worker processes: Celery carries the messages, the store holds the truth, one module for each kind of task knows the work.

Knows everything in core but the operator, and nothing of Kubernetes. Only this package imports Celery, and only its room
``pipeline`` imports pyspark.

What it hands on is imported when it is asked for: each Python process of Spark's executors imports this package on its way to
``pipeline``, and would load Celery and all kinds of tasks for nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater_workers.app import Broker, broker_of, make_app, send_look
    from headwater_workers.dispatching import Dispatcher
    from headwater_workers.kinds import KINDS, Handler
    from headwater_workers.running import run_task
    from headwater_workers.serving import serve

__all__ = ["KINDS", "Broker", "Dispatcher", "Handler", "broker_of", "make_app", "run_task", "send_look", "serve"]

_ROOMS = {
    "app": ("Broker", "broker_of", "make_app", "send_look"),
    "dispatching": ("Dispatcher",),
    "kinds": ("KINDS", "Handler"),
    "running": ("run_task",),
    "serving": ("serve",),
}


def __getattr__(name: str) -> Any:
    for room, names in _ROOMS.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{room}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
