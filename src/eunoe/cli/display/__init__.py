"""What a person sees at a terminal: tables, texts, JSON and progress."""
