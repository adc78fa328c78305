"""Worker processes: Celery carries the messages, the store holds the truth, and a job for each kind of task does the work.

Knows everything in core but the operator, and nothing of Kubernetes. Only this package imports Celery, and only its package
``pipeline`` imports pyspark. Nothing is imported here: Spark's executors, which run functions of the pipeline, need neither.
"""
