"""The program that a trace leaves: a graph of equations over values, what it means, and what its shapes are."""
