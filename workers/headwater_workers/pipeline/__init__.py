"""Spark jobs for work that outgrows one machine. The only package that may import pyspark, and it does so only when a job runs.

The rules come from core; this package distributes them over executors and must not add any, nor write to a store.
"""

from headwater_workers.pipeline.file_table_work import SparkFileWork, file_work_by_spark
from headwater_workers.pipeline.spark_archive import pack_environment
from headwater_workers.pipeline.spark_lake_files import SparkFileEngine
from headwater_workers.pipeline.spark_session import Engine, SparkOptions, find_engine
from headwater_workers.pipeline.spark_survey import SparkSurvey, survey_by_spark, survey_on_spark

__all__ = [
    "Engine",
    "SparkFileEngine",
    "SparkFileWork",
    "SparkOptions",
    "SparkSurvey",
    "file_work_by_spark",
    "find_engine",
    "pack_environment",
    "survey_by_spark",
    "survey_on_spark",
]
