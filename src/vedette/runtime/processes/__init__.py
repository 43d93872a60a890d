"""Processes: supervisor, coordinator, fetchers, indexer, server, event recorder, notifier, hub client."""
