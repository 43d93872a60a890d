"""Simulated ad markets."""
