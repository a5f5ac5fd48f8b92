"""20 Newsgroups as counts of 1,995 words, the version that neural topic models are compared on."""

import gzip
from typing import NamedTuple

import numpy as np
from scipy import sparse

from aevb.data import download
from aevb.data.download import RemoteFile

FOLDER = "news20"  # below the cache or AEVB_DATA
_COMMIT = "70091d4f1df37c7a7eb2995fbbffba36caed46aa"
_BASE = f"https://raw.githubusercontent.com/sophieburkhardt/dirichlet-vae-topic-models/{_COMMIT}/data/20news/"
_DIGESTS = {
    "train.feat": "sha256:6c4b612d03bb54c68c923ae7b689398c4a7bd1046b0874332dfe0a0c42830143",
    "test.feat": "sha256:5e5beaff3c66affeb08aeefb69e40e3e1c52360cdad2df03e7df2ecb6b79fad0",
    "vocab.new": "sha256:75594f361e317a8c8fafca9846e903143ff25bb57ac4207ff850ef4245eb94bb",
}
MAX_BYTES = 20_000_000


class Documents(NamedTuple):
    """Documents as counts of words."""

    train: sparse.csr_array  # (11259, 1995)
    test: sparse.csr_array  # (7488, 1995)
    vocabulary: list[str]  # (1995,), the words in the order of the columns


def load_newsgroups() -> Documents:
    """Return the documents of 20 Newsgroups, after downloading them if necessary.

    They are the counts that Miao, Yu and Blunsom ("Neural variational inference for text processing", 2016) and others
    after them use, with their split.

    Raises:
        DataFileError: A file could not be downloaded, or is not what was published.
    """
    train, test, vocabulary = (_text(name).splitlines() for name in _DIGESTS)
    words = [line.split()[0] for line in vocabulary]
    return Documents(read_counts(train, len(words)), read_counts(test, len(words)), words)


def read_counts(lines: list[str], num_words: int) -> sparse.csr_array:
    """Return the counts (N, D) in lines ``label word:count word:count ...``, where words are numbered from 1.

    Example:
        >>> read_counts(["1 2:5 3:1", "1 1:4"], 3).toarray().tolist()
        [[0, 5, 1], [4, 0, 0]]
    """
    documents = [[entry.split(":") for entry in line.split()[1:]] for line in lines]
    starts = np.cumsum([0, *map(len, documents)])
    entries = np.array([entry for document in documents for entry in document], np.int64).reshape(-1, 2)
    return sparse.csr_array((entries[:, 1], entries[:, 0] - 1, starts), shape=(len(lines), num_words))


def _text(name):
    file = RemoteFile(name, (_BASE + name,), _DIGESTS[name], MAX_BYTES)
    packed = download.find(FOLDER, f"{name}.gz")  # as kept by some
    if packed is not None:
        packed_file = file._replace(name=packed.name, content_digest=file.digest)
        download.check(packed_file, packed)
        with gzip.open(packed, "rt", encoding="utf-8") as content:
            return content.read()
    path = download.find(FOLDER, name)
    if path is None:
        path = download.fetch(file, download.writable_folder(FOLDER) / name)
    download.check(file, path)
    return path.read_text(encoding="utf-8")
