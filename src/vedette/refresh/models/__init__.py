"""Models of change: how probably a page differs by now from what its last fetch brought; one per file."""
