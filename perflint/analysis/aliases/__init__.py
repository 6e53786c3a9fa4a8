"""Which values share memory, who writes into it, and which modules share nothing with others."""
