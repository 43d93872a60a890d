"""Refresh: when to fetch known pages again. Batches of known pages, change models, and due-time policies."""
