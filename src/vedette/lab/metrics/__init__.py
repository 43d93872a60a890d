"""Metrics of lab runs: pure functions of what happened and when."""
