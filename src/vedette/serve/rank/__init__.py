"""Ranking of search results: weights over features, and the steps that reorder results afterward."""
