"""Recording: while the Python of a step runs, its ops become equations, or are matched with those of earlier calls."""
