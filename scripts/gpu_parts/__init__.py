"""What `gpu_check.py` loads, and what it measures of it."""
