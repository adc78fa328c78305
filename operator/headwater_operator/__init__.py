"""The operator: keeps realms and catalogs as their resources in Kubernetes declare them.

It reads resources, has the planners of `headwater.reconcile` say what to do, carries that out, and writes down what it saw. It holds no
rules of its own, and does nothing that takes long: that is what tasks and workers are for. Knows neither Celery nor Spark.
"""
