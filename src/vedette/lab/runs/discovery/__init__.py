"""Simulations of discovery: on recorded front pages, and on histories in cycles."""
