"""Storage of push: WebSub subscriptions, change signals, trust in their sources, ping keys."""
