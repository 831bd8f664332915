"""Declare the paper's experiments."""
