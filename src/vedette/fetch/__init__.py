"""How to ask, and what came back? Values in, values out; the requests themselves leave from ``edges/http``."""
