"""The experiments: a module for each, which ends with EXPERIMENT."""
