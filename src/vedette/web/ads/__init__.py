"""Ads: the service that console, API and command line use, and its reports."""
