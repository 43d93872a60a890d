"""Ports of the console: the values its pages show, and the service protocols that runtime implements."""
