"""Parsers of the formats in which sites announce pages: feeds, sitemaps, and the XML reader under both."""
