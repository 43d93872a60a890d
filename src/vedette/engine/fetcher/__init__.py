"""Fetcher: request assigned URLs politely, host by host, and parse the responses into results."""
