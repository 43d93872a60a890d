"""Serve: ranking of search results, the reasons for it, deduplication, and ads."""
