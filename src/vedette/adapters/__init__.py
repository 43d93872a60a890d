"""Adapters to the outside: SQLite stores, WARC archive, search index, HTTP, DNS, local sockets, PDF, clock."""
