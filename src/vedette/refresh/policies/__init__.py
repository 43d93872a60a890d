"""Refresh policies: one per file, each a ``policy.Due`` over ``KnownPages`` batches that returns due times."""
