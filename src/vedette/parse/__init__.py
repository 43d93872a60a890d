"""Parse fetched pages into facts: HTML, text, change, similarity and quality; never fails on any input."""
