"""From the body of an answer to what it says, within limits."""
