"""The frontier: which unseen URL to fetch first, the queues of every host, URL traps, and order policies."""
