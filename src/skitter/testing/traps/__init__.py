"""A web of 45 endless hosts and 52 honest ones that look like them, with the truth about both."""
