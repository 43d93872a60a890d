"""Search: answer queries over the index: candidates, scoring, hidden pages, and which pages are indexable."""
