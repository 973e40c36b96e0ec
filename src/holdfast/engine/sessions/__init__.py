"""Sessions: start, end, list, check that new work is allowed, approve and reset."""
