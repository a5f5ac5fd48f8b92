import re
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def test_example_of_the_readme():
    """E[z²] = a(a + 1) and its derivative 2a + 1 at a = 2.5.

    Tolerance: six standard errors at 10,000 draws (sd of z² is 12, of its gradient below 10);
    a correct program fails for one seed in 10⁸.
    """
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names = {}
    exec(code, names)
    assert names["value"] == pytest.approx(8.75, abs=0.72)
    assert names["gradient"] == pytest.approx(6.0, abs=0.6)
