"""Commands of operators and advertisers: as values, as JSON, and parsed from user input."""
