"""The registry of a cluster in PostgreSQL: shards, owners, leases, sites."""
