"""Exact models of environments by exhaustive exploration of their own steps."""
