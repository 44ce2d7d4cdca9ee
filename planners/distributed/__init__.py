"""One model in several processes, under PETSc and MPI: ``planners.solve(..., engine="petsc")``.

Each process holds the rows of its part of the states and the values that they read; solvers,
certificates and kernels are those of one process (`planners.engine`).  docs/distributed.md is the
page for users.

- `processes`: who takes part, and what is said among them
- `control`: time limits, Ctrl-C and callbacks, decided together
- `partition`: which states are whose, and how many there may be
- `reading`: the tables of a part, read from a model by rows
- `ghosts`: the values of neighbours, exchanged by PETSc
- `engine`: backups on a part
- `distances`: the steps to a terminal state, across parts
- `krylov`: policies evaluated by PETSc's linear solvers
- `result`: what each process gets
- `discounted`: the call
"""
