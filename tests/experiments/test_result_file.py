"""Results of experiments: measured in several processes, kept in order, and not measured again."""

from functools import partial

import pytest

from aevb.experiments.result_file import ResultFile

pytestmark = pytest.mark.thorough
FAILING = partial(dict, 2)  # TypeError; functions of a test cannot be imported by other processes


@pytest.mark.parametrize("processes", [1, 2])
def test_results_are_measured_once_and_in_order(processes, tmp_path):
    measures = {("a", str(number)): partial(dict, number=number) for number in range(5)}
    file = ResultFile(tmp_path / "results.json", {"title": "numbers"})
    file.add(("a", "2"), lambda: {"number": -2})
    found = dict(file.add_all(measures, processes))
    assert list(found) == [("a", key) for key in "20134"]
    assert [found["a", str(number)]["number"] for number in range(5)] == [0, 1, -2, 3, 4]
    again = ResultFile(tmp_path / "results.json", {})
    assert dict(again.add_all(dict.fromkeys(measures, FAILING), processes)) == found


def test_what_was_measured_before_a_failure_is_kept(tmp_path):
    file = ResultFile(tmp_path / "results.json", {})
    with pytest.raises(TypeError, match="iterable"):
        dict(file.add_all({("a",): partial(dict, number=1), ("b",): FAILING}, 2))
    assert list(ResultFile(tmp_path / "results.json", {}).results) == ["a"]
