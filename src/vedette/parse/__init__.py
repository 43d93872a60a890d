"""What does it say, and is it new? Bytes in, facts out; nothing from the web can make it fail."""
