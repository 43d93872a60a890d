"""Indexing: build the search index from the crawl state, and the background jobs beside it."""
