"""Console administration pages: sign-in guard, activity log, storage and lab reports."""
