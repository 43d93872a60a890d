"""Durability of a cluster's shards: copies of state and archive in object storage."""
