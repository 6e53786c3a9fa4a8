"""The model of time: what a recorded step would take on a given accelerator. All of it is modelled, not measured."""
