"""Experiments of the lab: each file asks one question, and defines the metrics that answer it."""
