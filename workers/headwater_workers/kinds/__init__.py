"""What workers know to do: one module a kind of task, each with a function ``run``.

A handler finds out by itself what is done already, so that it can be run again after any interruption; calls ``claim.check`` before
each durable step; and reports progress. It knows nothing of Celery.
"""

from headwater_workers.kinds.handlers import KINDS, Handler

__all__ = ["KINDS", "Handler"]
