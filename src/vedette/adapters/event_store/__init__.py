"""The event store ``record.db``: searches, clicks and time series, and the logs that feed it."""
