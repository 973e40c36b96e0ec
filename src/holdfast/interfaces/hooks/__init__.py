"""What agents call before and after they touch anything."""
