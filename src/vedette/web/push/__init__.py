"""Push."""
