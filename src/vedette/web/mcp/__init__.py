"""The MCP server: search as tools for language models, by the Model Context Protocol."""
