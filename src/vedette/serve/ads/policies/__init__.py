"""Policies of sponsored choice: one per file, each a ``decide.Choice`` over ``candidates.Candidates`` batches."""
