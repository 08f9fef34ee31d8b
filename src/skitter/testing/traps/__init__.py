"""A web of forty endless hosts and forty honest ones that look like them, with the truth about both."""
