"""Expiry of snapshots: commits of metadata without the snapshots, references and log entries that policies let go. Deletes no file."""
