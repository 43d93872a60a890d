"""The commands of the ``vedette`` command line, one module for each, named like the command."""
