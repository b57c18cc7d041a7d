"""The functions of kernel.h, and the caller's buffers that they read and write."""
