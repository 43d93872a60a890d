"""Why a URL is fetched or not, in words."""
