"""Simulations of ranking under unknown quality: communities and the Jester joke study."""
