"""The ``vedette`` command line: ``main`` finds the command, ``commands`` has one module for each of them."""
