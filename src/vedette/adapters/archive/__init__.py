"""The WARC archive of fetched pages: writer, reader, recovery of damaged files, retention, replay, export."""
