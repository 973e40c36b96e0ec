"""Sessions: begin, end, list, admit new work, approve and reset."""
