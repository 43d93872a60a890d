"""Event store."""
