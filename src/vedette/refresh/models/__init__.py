"""Change models: the probability that a page differs by now from its last fetch; one per file."""
