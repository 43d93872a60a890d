"""Ad policies: one per file, each a ``policy.Choice`` over ``AdCandidates`` batches."""
