"""What runs the experiments: tasks, workers, results, progress."""
