"""Order policies of the frontier: one per file, each a ``policy.Priority`` over ``unseen.UnseenUrls`` batches."""
