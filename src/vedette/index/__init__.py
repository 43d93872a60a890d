"""Index and query: which page fields are indexed, how queries are parsed, and the features of matching pages."""
