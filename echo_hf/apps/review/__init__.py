"""The page on which people review samples: keep, remove, flag, and put right what is wrong."""
