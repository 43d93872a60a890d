"""Search quality of a repository: query files, workloads, scoring, and the quality of eq. 4.5."""
