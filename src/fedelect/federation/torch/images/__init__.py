"""Layers for images, in the layout and by the arithmetic that suit the processor."""
