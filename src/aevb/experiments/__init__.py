"""The paper's figures and claims, from settings in TOML files to pictures, numbers and verdicts.

Each figure is a few curves (:mod:`aevb.experiments.curves`): a learner run on data, judged at given numbers of training
samples. Curves are kept on disk while they grow, so that a run can be cut anywhere, and shared by all figures that need
them.

Paper: §5, App. A.
"""
