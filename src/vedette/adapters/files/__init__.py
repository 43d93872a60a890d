"""Files and databases in general: atomic replacement, SQLite files, backup, secrets."""
