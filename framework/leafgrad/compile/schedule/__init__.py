"""Order of execution and memory: loops over chunks of the batch, whole-array stages, which buffer holds what."""
