"""Crawl."""
