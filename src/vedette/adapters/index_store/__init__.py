"""The search index on disk: Tantivy, the page table beside it, generations, gains and impact estimates."""
