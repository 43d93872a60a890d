"""Console pages on search: recorded searches, ranking and rules for results."""
