"""Learning from users: the query workload and its trends, bot filtering, and page quality from clicks."""
