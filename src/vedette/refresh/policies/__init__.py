"""Policies of the refresh stage: one per file, each a ``decide.Due`` over ``known.Known`` batches."""
