"""The web server: public pages, API, console, and what guards them."""
