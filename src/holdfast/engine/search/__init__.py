"""Finding a moment of the work by what was meant, said or touched."""
