"""Files and databases in general: atomic replacement, SQLite files, backup, PDF text, secrets."""
