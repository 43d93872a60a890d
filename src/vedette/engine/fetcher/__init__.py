"""Fetcher."""
