"""What is on this machine: its facts, its interpreters, and an environment for each of them."""
