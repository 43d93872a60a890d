"""Remote observers: the costs of observing from near a site, the assignment of hosts, and how bodies are sent home."""
