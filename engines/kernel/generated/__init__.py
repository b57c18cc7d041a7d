"""Files that tests rewrite (`--update-golden`) and compare with what they were made from."""
