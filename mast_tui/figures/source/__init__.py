"""The data of a workspace as arrays, the input of figures."""
