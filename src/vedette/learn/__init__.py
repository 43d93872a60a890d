"""Learning from users: the query workload and its trends, bot filtering, and what clicks say about pages."""
