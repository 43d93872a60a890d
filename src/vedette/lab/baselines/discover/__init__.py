"""Discover."""
