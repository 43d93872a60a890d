"""Simulations of ranking under unknown quality: communities and the joke study."""
