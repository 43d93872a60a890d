"""The web server: public pages, API, console, and the gate in front of them."""
