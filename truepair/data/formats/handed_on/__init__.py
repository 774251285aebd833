"""Layouts that other tools read, which an audit hands its pairs on in: one file a layout, reader and writer."""
