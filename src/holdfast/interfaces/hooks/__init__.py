"""The hooks that agents call before and after each step."""
