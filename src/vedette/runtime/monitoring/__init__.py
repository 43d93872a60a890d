"""Monitoring for the console, read from a data folder beside the running coordinator."""
