"""What keeps the operator's process going: watching, the cache and the queue, the Lease, health.

Knows that resources have names, versions and deletion times. Must not know what a Realm or a Catalog asks for.
"""
