"""Measure how fetches change search quality: score curves per watched term and the gain of each page change."""
