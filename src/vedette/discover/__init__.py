"""Discover new pages: normalize URLs, read feeds and sitemaps, and choose which sources to poll."""
