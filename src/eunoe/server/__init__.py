"""The server: a memory over HTTP and MCP, with keys and tenants, and the inspector."""
