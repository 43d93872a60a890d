"""Indexing."""
