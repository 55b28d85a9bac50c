"""The methods of SessionDB, one idea per class; each is one transaction over plain functions of the package above."""
