"""The past of a branch: its log, what a text such as ``main~1`` means, what differs between two commits, merges.

Reads commits and makes new ones; must not know how catalogs are created and deleted.
"""
