"""The tests, a package so that they can share the stages they are made with."""
