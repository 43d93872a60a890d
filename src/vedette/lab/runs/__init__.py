"""Simulations that the lab's experiments run: discovery, refresh, order, joint, ranking and ads."""
