"""Storage of alerts: new pages, the alerts they match, and webhook deliveries."""
