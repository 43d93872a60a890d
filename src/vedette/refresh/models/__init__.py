"""Change models: how likely a page differs by now from what its last fetch brought; one per file."""
