"""What the device still has to do where the host runs on: for the cost of each wait."""
