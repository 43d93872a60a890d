"""Collect the facts that explain why a URL is fetched or not, as plain values."""
