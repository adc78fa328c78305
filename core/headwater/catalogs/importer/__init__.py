"""How tables that lie in some storage get into a catalog: planned, claimed, committed in batches, reported.

Must not know what surveyed them, nor tasks.
"""
