"""Crawl orders from the literature that the lab compares with."""
