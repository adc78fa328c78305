"""What outgrows one machine, as Spark jobs. The only room that may import pyspark, and it does so only when a job runs.

The rules come from core; this room spreads them over executors and must not add any, nor write to a store.
"""

from headwater_workers.pipeline.archives import pack
from headwater_workers.pipeline.engines import Engine, find_engine
from headwater_workers.pipeline.sessions import SparkOptions
from headwater_workers.pipeline.surveys import Survey, survey_by_spark, survey_on_spark

__all__ = ["Engine", "SparkOptions", "Survey", "find_engine", "pack", "survey_by_spark", "survey_on_spark"]
