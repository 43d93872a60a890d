"""The command line: ``main`` finds the command, ``commands`` has one file for each of them."""
