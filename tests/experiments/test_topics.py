import json
import os

import numpy as np
import pytest
from scipy import sparse

from aevb.data import newsgroups
from aevb.data.newsgroups import Documents, load_newsgroups, read_counts
from aevb.experiments import topics
from aevb.experiments.topics import frequencies_perplexity, reproduce_topics

NEEDS_DATA = pytest.mark.skipif(
    not os.environ.get("AEVB_DATA"), reason="needs 20 Newsgroups: set AEVB_DATA to a folder with news20/"
)
COUNTS = sparse.csr_array(np.random.default_rng(0).poisson(0.5, (60, 12)))
DOCUMENTS = Documents(COUNTS[:40], COUNTS[40:], [f"word{number}" for number in range(12)])


def test_frequencies_are_the_best_constant_model():
    only = Documents(COUNTS, COUNTS, DOCUMENTS.vocabulary)
    shares = COUNTS.sum(axis=0) / COUNTS.sum()

    entropy = -np.sum(shares * np.log(shares))

    assert frequencies_perplexity(only) == pytest.approx(np.exp(entropy), rel=1e-3)


@pytest.mark.thorough
def test_fits_are_written_and_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(topics, "load_newsgroups", lambda: DOCUMENTS)
    monkeypatch.setattr(topics, "NUM_TOPICS", 2)

    reproduce_topics("tiny", tmp_path)
    first = json.loads((tmp_path / "topics.json").read_text(encoding="utf-8"))["fits"]
    monkeypatch.setattr(topics, "fit_once", None)  # calling it would fail
    reproduce_topics("tiny", tmp_path)

    (fit,) = first
    assert 6 < fit["perplexity"] < 100  # of 12 words, after one epoch
    assert len(fit["topics"]) == 2
    text = (tmp_path / "topics.md").read_text(encoding="utf-8")
    assert f"| 0 | {fit['perplexity']:.1f} |" in text
    assert " ".join(fit["topics"][1]) in text


def test_lines_of_documents_become_counts():
    assert read_counts(["1 3:2 1:7", "1"], 3).toarray().tolist() == [[7, 0, 2], [0, 0, 0]]


@NEEDS_DATA
@pytest.mark.slow
def test_the_documents_are_those_published():
    found = load_newsgroups()

    assert found.train.shape == (11259, 1995)
    assert found.test.shape == (7488, 1995)
    assert found.test.sum() == 629_312
    assert {"god", "space", "hockey", "gun"} <= set(found.vocabulary)


@NEEDS_DATA
@pytest.mark.slow
def test_fifty_topics_reach_the_perplexity_of_the_target():
    fit = topics.fit_once(load_newsgroups(), 0, {"max_epochs": 20})

    assert fit["perplexity"] < topics.TARGET
    subjects = [{"moon", "orbit", "nasa"}, {"jesus", "christ", "god"}, {"playoff", "leafs", "rangers"}]
    assert all(any(len(subject & set(words)) >= 2 for words in fit["topics"]) for subject in subjects)
    assert newsgroups.FOLDER == "news20"
