"""What runs inside a worker that is profiled instead of timed."""
