"""A node of a cluster: the shards that it runs, and what they exchange with the others."""
