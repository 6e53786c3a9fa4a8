"""Copies between the host and the device: what is copied, where to, and out of what."""
