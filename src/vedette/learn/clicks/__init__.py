"""Clicks."""
