"""Serve: the ranking of search results, the reasons for it, deduplication, and the ads beside them."""
