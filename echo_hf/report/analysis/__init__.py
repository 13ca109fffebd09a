"""What people ask of the target, how it compares with prompt sets, and what they complain about."""
