"""Charts that compare several runs. Charts of a single run are in the other folders."""
