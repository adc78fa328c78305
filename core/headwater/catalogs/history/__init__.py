"""The past of a branch: its log, revision texts such as ``main~1``, differences between two commits, and merges.

This package reads commits and makes new ones; it must not know how catalogs are created and deleted.
"""
