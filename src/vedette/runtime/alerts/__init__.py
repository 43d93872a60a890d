"""Alerts in a running crawler: collect new pages, match and publish them, send webhooks, serve feeds."""
