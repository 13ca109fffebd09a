"""What stands for other people's packages is no part of the tests."""

collect_ignore = ["bagel_checkout", "without_torch"]
