"""Index and query: which page fields are indexed, what a query means, and the features of each matching page."""
