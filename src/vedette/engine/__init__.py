"""Crawl engine: the path of a URL, pure, in two halves: a coordinator that decides, and fetchers that request.

``coordinator.Coordinator`` assigns work and applies reports; ``fetcher.Fetcher`` turns assignments into requests and
answers into reports. Both are values in, values out: ``runtime`` drives them in processes of their own, tests in one
process, at made-up times.
"""
