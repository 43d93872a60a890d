"""Judge."""
