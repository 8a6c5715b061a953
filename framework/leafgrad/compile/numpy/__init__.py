"""The NumPy executor: a scheduled graph as Python source over preallocated arrays."""
