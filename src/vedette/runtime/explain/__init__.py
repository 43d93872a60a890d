"""Why a URL is fetched or not: facts as plain values."""
