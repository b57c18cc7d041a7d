"""Step -> Step: each file rearranges one thing that a training step does, and keeps every bit."""
