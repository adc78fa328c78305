"""Real servers for tests, started in temporary folders, and a proxy that spoils the way to them. Knows nothing of Headwater."""
