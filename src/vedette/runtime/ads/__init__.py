"""Ads in a running crawler: selection for result pages, learning from the ledger, and the console's service."""
