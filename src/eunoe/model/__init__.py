"""The nouns. Pure: nothing here reads, writes or imports anything heavy."""
