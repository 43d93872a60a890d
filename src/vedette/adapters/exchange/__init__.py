"""Exchange of links between the shards of a cluster: the outbox of a shard, and the mailbox that all of them share."""
