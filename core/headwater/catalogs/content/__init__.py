"""What a catalog holds, and the rules of changing it: keys, types of content, operations, plans, indexes.

Must not know branches, tags nor catalogs' definitions: it edits the commit that it is given.
"""
