"""Synthetic arrays."""
