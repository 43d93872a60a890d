"""Refresh: when to fetch known pages again. Batches of known pages, models of change, and due-time policies."""
