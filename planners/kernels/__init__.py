"""The compiled formulas of a backup, one file for each layout of a model."""
