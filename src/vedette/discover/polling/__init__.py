"""Polling."""
