"""Rows -> IDX files, for tests."""

import struct


def encode_images(pixels, height, width):
    return struct.pack(">4I", 0x803, len(pixels) // (height * width), height, width) + pixels


def encode_labels(labels):
    return struct.pack(">2I", 0x801, len(labels)) + labels
