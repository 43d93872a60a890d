"""The lab: recorded and synthetic webs on which the same engine and policies are measured and compared."""
