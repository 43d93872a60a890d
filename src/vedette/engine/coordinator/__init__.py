"""Coordinator: decide what is fetched, when and by which fetcher; hosts, robots.txt, duplicates, traps."""
