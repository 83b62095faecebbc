"""The routes under /v1, one module for each resource."""
