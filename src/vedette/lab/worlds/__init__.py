"""Webs that can be asked what a request at time t would have brought."""
