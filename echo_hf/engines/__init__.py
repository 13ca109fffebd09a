"""Model engines, and the contract they share."""
