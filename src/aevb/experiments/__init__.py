"""The paper's figures and claims, from settings in TOML files to pictures, numbers and verdicts.

Each figure consists of several curves (:mod:`aevb.experiments.curves`): a learner run on a data set and evaluated at
given numbers of training samples. Curves are saved to disk while they run: a run can be interrupted at any time, and
figures share the curves that they have in common.

Paper: §5, App. A.
"""
