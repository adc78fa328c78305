"""The content of a catalog and the rules of changing it: keys, types of content, operations, plans, indexes.

This package must not know branches, tags or catalogs' definitions: it edits the commit that it is given.
"""
