"""Judges of live crawlers: politeness by access logs, quality and alert delays by the truth of a synthetic web."""
