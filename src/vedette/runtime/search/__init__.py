"""Search in a running crawler: searcher, index snapshot, lexicon, and learning from clicks."""
