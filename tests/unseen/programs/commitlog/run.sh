exec ./ledger
