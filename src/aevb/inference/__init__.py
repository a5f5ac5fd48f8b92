"""Inference: log p(x) of single datapoints, samples from their posteriors, and diagnostics of the encoder.

Import from the modules: BlackJAX takes half a second to load, and most code does not need it.
"""
