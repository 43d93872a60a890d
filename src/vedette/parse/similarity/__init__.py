"""Find similar pages: shingles, MinHash sketches, and the canonical URL of a group of copies."""
