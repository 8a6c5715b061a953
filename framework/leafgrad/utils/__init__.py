"""What surrounds training: data loading and checkpoints."""
