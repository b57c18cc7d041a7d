"""Charts that compare several runs. All other charts show a single run."""
