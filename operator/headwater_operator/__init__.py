"""The operator: keeps realms and catalogs as their resources in Kubernetes declare them.

It reads resources, lets the planners of `headwater.reconcile` decide, executes their plans, and writes the observed state back. It has no
rules of its own, and does nothing that takes long: that is for tasks and workers. Knows neither Celery nor Spark.
"""
