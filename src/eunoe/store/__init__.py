"""Where memory rests: the contract, the SQLite store, its migrations and the conformance suite."""
