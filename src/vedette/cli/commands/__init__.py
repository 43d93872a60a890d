"""One module for each command of ``vedette``, named like the command."""
