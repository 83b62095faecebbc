"""Memory for agents made with LangChain's `create_agent`."""
