"""Simulations of the order of first fetches."""
