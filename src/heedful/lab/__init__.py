"""`heedful lab`: the paper's claims as short experiments."""
