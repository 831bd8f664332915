"""The paper's tables and figures, measured again: one function each."""
