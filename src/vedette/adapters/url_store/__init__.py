"""Url store."""
