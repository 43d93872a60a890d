"""Search queries: the query language, spelling correction, suggestions, vocabulary and the retrieval tree."""
