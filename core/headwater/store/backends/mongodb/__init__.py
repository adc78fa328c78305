"""A store in MongoDB: two collections of one database, written with majority write concern and read with majority read concern.

``row_documents`` knows how rows are stored, ``driver_calls`` the driver's client and its time-outs, ``errors`` what its faults mean.
Knows nothing of what the rows mean, nor of any other backend.
"""

from headwater.store.backends.mongodb.backend import KIND, MongodbBackend

__all__ = ["KIND", "MongodbBackend"]
