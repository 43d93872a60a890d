"""Crawl engine: a coordinator that decides and fetchers that send requests, both pure.

``coordinator.Coordinator`` assigns work and applies reports; ``fetcher.Fetcher`` turns assignments into requests and
responses into reports. Both take and return plain values. ``runtime`` drives them in separate processes; tests drive
them in one process with a simulated clock.
"""
