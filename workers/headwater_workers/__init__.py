"""Worker processes: Celery carries the messages, the store holds the truth, one module for each kind of task knows the work.

Knows everything in core but the operator, and nothing of Kubernetes. Only this package imports Celery, and only its room
``pipeline`` imports pyspark.
"""

from headwater_workers.app import Broker, broker_of, make_app, send_look
from headwater_workers.dispatching import Dispatcher
from headwater_workers.kinds import KINDS, Handler
from headwater_workers.running import run_task
from headwater_workers.serving import serve

__all__ = ["KINDS", "Broker", "Dispatcher", "Handler", "broker_of", "make_app", "run_task", "send_look", "serve"]
