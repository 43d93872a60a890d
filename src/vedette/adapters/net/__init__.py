"""Network: HTTP client, DNS resolver, webhooks, and messages between local processes."""
