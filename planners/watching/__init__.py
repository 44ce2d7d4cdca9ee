"""The live view of a solve, and its recordings."""
