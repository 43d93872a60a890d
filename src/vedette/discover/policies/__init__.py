"""Policies of the discover stage: one per file, each a ``decide.Choice`` over ``looked.Sources`` batches."""
