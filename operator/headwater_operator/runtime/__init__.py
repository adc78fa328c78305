"""The runtime of the operator's process: watches, cache, work queue, leader election, health.

Knows that resources have names, versions and deletion times. Must not know what a Realm or a Catalog declares.
"""
