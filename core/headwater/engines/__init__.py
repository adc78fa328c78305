"""What the users of engines write down to reach a catalog that a server serves: Spark, Trino, pyiceberg and others.

Knows addresses, forms of configuration, and credentials in files; opens no store. Only ``check_warehouse`` asks a server.

Imports nothing by itself: most commands need none of it.
"""
