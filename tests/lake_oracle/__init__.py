"""An oracle for the files of a lake: random lakes, what is live in them by other people's readers alone, and what a report may say.

``live_files``, ``lake_model`` and ``foreign_tables`` know nothing of Headwater: they read and write Iceberg's files by fastavro and the
standard library, and keep their own books of what was committed. Only so can they find a mistake that our own readers make, too.
"""
