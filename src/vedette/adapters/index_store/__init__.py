"""Index store."""
