"""The import of existing tables into a catalog: planned, claimed, committed in batches, reported.

This package must not know which engine surveyed the tables, nor tasks.
"""
