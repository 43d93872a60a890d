"""Monitoring for the console, read from a data folder while the coordinator runs."""
