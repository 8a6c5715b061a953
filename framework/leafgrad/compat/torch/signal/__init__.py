"""Signals: the window functions."""
