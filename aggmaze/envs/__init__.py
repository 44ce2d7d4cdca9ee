"""Gymnasium environments that step through exact models."""
