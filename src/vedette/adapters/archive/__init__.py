"""The WARC archive of fetched pages: write, read, recover, retain, export."""
