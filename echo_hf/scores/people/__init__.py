"""What people say of the same outputs, and how far judges agree with them (ECHO appendix C)."""
