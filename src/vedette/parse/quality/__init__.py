"""Judge the quality of a page: whether it is worth indexing, a soft 404, or spam."""
