"""What did people teach us?"""
