"""Fetch decisions: robots.txt, politeness, credentials, request headers and response bodies; no network here."""
