"""Crawl store."""
