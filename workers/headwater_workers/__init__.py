"""Worker processes: Celery carries the messages, the store holds the truth, one module for each kind of task knows the work.

Knows everything in core but the operator, and nothing of Kubernetes. Only this package imports Celery, and only its room
``pipeline`` imports pyspark. Nothing is imported here: Spark's executors, which run functions of the pipeline, need neither.
"""
