"""The diagnosis of a declared gradient that is not the derivative."""
