"""Scheduling: budget, price, first fetches, refreshes, polls, and which URLs of a host to fetch next."""
