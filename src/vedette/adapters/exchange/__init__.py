"""Exchange of links between the shards of a cluster: each shard has an outbox, and all of them share a mailbox."""
