"""The Model Context Protocol: memory as tools, resources and prompts for assistants, over stdio and HTTP."""
