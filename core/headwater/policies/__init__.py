"""Policies: what a lake keeps, said for a realm's catalogs and tables, and how a table's own properties meet it.

They are stored in the realm's reference ``policy-mappings``. Nothing here looks at a file or changes a table.
"""
