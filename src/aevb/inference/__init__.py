"""Inference: log p(x) of single datapoints, samples of their posteriors, and what an encoder leaves unused.

Import from the modules: BlackJAX takes half a second to load, which those who only hash rows should not pay.
"""
