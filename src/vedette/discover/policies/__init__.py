"""Polling policies of the discover stage: one per file, each a ``policy.Choice`` over ``Sources``."""
