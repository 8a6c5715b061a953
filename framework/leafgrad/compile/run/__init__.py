"""Calls: when a program runs, what it changes, how its results are differentiated, and what there is to tell of it."""
