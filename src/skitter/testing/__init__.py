"""The synthetic web, shipped so that users can try their crawls on it before they let them out."""
