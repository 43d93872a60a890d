"""Policies of the order stage: one per file, each a ``decide.Priority`` over ``unseen.Unseen`` batches."""
