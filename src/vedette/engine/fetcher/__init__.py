"""Fetcher: request assigned URLs politely, host by host, and read the answers into results."""
