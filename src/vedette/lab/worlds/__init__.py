"""Worlds of the lab: recorded and synthetic webs that know the response to any request at time t."""
