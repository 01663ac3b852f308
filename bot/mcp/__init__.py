"""`waiton mcp`: other agents put plans into jobs, see what has happened, and never repeat a write that has."""
