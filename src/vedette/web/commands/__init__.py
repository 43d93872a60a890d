"""Commands of operators and advertisers: as values, as JSON, and parsed from what people type."""
