"""Guards: what the Python of a step reads beside its arguments, and the test that it is as it was."""
