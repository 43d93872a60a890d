"""Metrics of runs: pure functions of what happened and when."""
