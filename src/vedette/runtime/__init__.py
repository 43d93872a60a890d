"""The runtime: the processes that run the engine on the real web, and the services behind the pages."""
