"""Coordinator: decide what to fetch, when, and with which fetcher; hosts, robots.txt, duplicates, traps."""
