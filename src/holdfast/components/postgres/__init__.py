"""PostgreSQL databases: dumped into a checkpoint, restored in one transaction."""
