"""Where memory rests: the contract, its SQL and the SQLite store."""
