"""What one call of a CUDA library does and the host does in many operations: attention, recurrent layers."""
