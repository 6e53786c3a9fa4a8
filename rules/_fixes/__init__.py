"""Fixes and advice that several rules share."""
