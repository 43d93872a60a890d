"""Building blocks of the console's pages: layout, tables, forms, charts, scales and time series."""
