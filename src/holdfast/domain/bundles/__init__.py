"""Bundle metadata and completeness checks."""
