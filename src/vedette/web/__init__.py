"""The pages and the API that people see."""
