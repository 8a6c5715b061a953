"""Rules by which `simplify` gives simpler values, a file per subject."""
