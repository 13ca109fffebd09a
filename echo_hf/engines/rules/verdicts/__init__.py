"""Rules for comments and tasks: what is said to have failed, and what kind of picture is wanted."""
