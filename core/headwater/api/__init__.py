"""The public API for Python: ``headwater.connect(url)``, and the objects that it leads to.

Knows everything of the core but the command line, and keeps nothing of its own: each method is one call of the core, with ids, times and
errors as people see them.

The package ``headwater`` hands its objects on. This one imports nothing by itself: the command line needs parts of it, and not all.
"""
