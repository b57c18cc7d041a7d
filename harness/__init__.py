"""Runs engines on workloads under interpreters, and keeps what they measured."""
