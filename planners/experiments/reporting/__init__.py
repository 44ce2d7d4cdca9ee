"""What shows their results: pages, figures, and the numbers of the paper."""
