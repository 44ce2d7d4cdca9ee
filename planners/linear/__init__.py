"""Linear algebra along the paths of a policy: forests, chains, basins, Krylov methods."""
