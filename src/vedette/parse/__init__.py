"""Parse fetched pages into facts: HTML, text, change, similarity and quality; no input can make it fail."""
