"""Simulations that experiments run: discovery, refresh, order, joint, ranking and ads."""
