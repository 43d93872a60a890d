"""The known URLs (frontier): a hash table, queues by host, leases and their rows in ``state.db``."""
