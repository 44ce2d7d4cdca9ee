"""Exact models: a general sparse table, and moves that may slip."""
