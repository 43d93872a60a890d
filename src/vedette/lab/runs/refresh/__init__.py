"""Simulations of refreshing copies under a budget."""
