"""Adapters to the outside: SQLite stores, WARC archive, search index, HTTP, DNS, local sockets, documents, clock."""
