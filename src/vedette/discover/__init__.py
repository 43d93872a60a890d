"""Where do new pages show up? How a link becomes a URL of a site."""
