"""Sweeps of special kinds, and orders to sweep in."""
