"""Worlds of the lab: recorded and synthetic webs that say what a request at time t would have brought."""
