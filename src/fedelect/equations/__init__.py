"""Pure array functions, one for each equation of the paper; numpy only."""
