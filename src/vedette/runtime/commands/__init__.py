"""Operator commands at runtime: executing them, sending them to the coordinator, and importing."""
