"""Commands of operators and advertisers: as values, as JSON, and as people type them."""
