"""The page of sequences in a browser: what it shows at each step, by hand-made views."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from aevb.data.series import SequenceData
from aevb.explorer import sequence_contents, write_page
from aevb.explorer.views import LEVELS, QUANTILES, Panel, View, Views

pytestmark = pytest.mark.thorough
HOSTILE = "</script><img src=x onerror=alert(1)><!-- <script>"
T, STEPS = 6, 3


def view_of(name, shift):
    observed = np.arange(T, dtype=float)[:, None] + shift
    observed[2] = np.nan
    middle = np.arange(T + STEPS)[:, None] + shift
    line = Panel("level", (), observed, middle + np.linspace(-3, 3, len(QUANTILES)))
    seen = np.eye(3)[np.arange(T) % 3]
    seen[4] = np.nan
    roll = Panel("sky", (HOSTILE, "rain", "snow"), seen, np.tile([0.25, 0.6, 0.15], (T + STEPS, 1)))
    times = [f"2024-01-{day + 1:02d}" for day in range(T)]
    path = np.stack([np.cos(np.arange(T)), np.sin(np.arange(T))], axis=1)
    return View(name, np.arange(T + STEPS) - (T - 1.0), times, [line, roll], path, later=np.zeros(0))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    views = Views([view_of(HOSTILE, 10), view_of("second", 50)], ("z₁", "z₂"), STEPS, "step", 0)
    encoded = SimpleNamespace(lengths=np.full(2, T))
    data = SequenceData(HOSTILE, "", None, encoded, (HOSTILE, "second"))
    model = SimpleNamespace(latent_dim=2)
    path = tmp_path_factory.mktemp("sequences") / "explorer.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence_contents, "views_of", lambda *_: views)
        return write_page(path, model, data, name="run")


def test_names_stay_text_and_the_page_is_alone(page):
    text = page.read_text(encoding="utf-8")
    facts = json.loads(re.search(r'id="facts">(.*?)</script>', text, re.DOTALL)[1])
    assert facts["title"] == facts["sequences"][0]["name"] == facts["sequences"][0]["panels"][1]["rows"][0] == HOSTILE
    assert facts["levels"] == list(LEVELS)
    assert text.count("<script") == 3
    assert "<img" not in text
    assert "default-src &#39;none&#39;" in text


def test_time_is_moved_through_by_slider_picture_and_path(page, visit):
    seen = visit(page)
    assert seen.text("#when") == "step 6 of 6, 2024-01-06"
    assert seen.text(".panel:nth-child(1) .small") == "observed 15; median 15, 80 % from 13 to 17"

    seen.page.locator("#step").press("Home")
    assert seen.text("#when") == "step 1 of 6, 2024-01-01"
    assert (
        seen.text(".panel:nth-child(2) .small") == f"observed {HOSTILE}; expected rain 60 %, {HOSTILE} 25 %, snow 15 %"
    )
    seen.page.locator("#step").press("End")
    assert seen.text("#when") == "forecast, 3 steps after the end"
    assert seen.text(".panel:nth-child(1) .small") == "median 18, 80 % from 16 to 20"

    box = seen.page.locator(".panel:nth-child(1) canvas").bounding_box()
    left, right = 86, 10  # margins, as in sequence_panel.js
    at = left + 2.5 * (box["width"] - left - right) / (T + STEPS)
    seen.page.mouse.click(box["x"] + at, box["y"] + 20)
    seen.rest()
    assert seen.text("#when") == "step 3 of 6, 2024-01-03"
    assert seen.text(".panel:nth-child(1) .small").startswith("missing; median 12")
    seen.page.mouse.click(*seen.place("#path", 0.99, 0.5))  # next to (1, 0), the first state
    assert seen.text("#when") == "step 1 of 6, 2024-01-01"


def test_another_sequence_is_chosen_and_the_address_keeps_it(page, visit):
    seen = visit(page)
    seen.page.select_option("#sequence", "1")
    assert seen.text(".panel:nth-child(1) .small").startswith("observed 55")
    seen.page.locator("#step").press("ArrowLeft")
    assert seen.page.evaluate("location.hash") == "#1.4"
    seen.page.locator("#next").click()
    assert seen.page.evaluate("location.hash") == "#0.5"

    again = visit(page, "#1.2")
    assert again.page.locator("#sequence").input_value() == "1"
    assert again.text("#when") == "step 3 of 6, 2024-01-03"
    assert visit(page, "#7.99").text("#when") == "step 6 of 6, 2024-01-06"


def test_observations_bands_and_forecasts_are_drawn_in_their_colours(page, visit):
    seen = visit(page, "#0.0")
    colours = seen.page.evaluate(
        """() => {
          const [line, roll] = document.querySelectorAll(".panel canvas");
          const at = (canvas, x, y) => {
            const ratio = canvas.width / canvas.clientWidth;
            return [...canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data];
          };
          const unit = (line.clientWidth - 96) / 9;
          const x = (step) => 86 + (step + 0.5) * unit;
          return { before: at(roll, x(1) + 0.4 * unit, 13), after: at(roll, x(7), 13), seen: at(roll, x(1), 13) };
        }"""
    )
    red, _, blue, alpha = range(4)
    assert colours["before"][blue] > colours["before"][red]
    assert colours["after"][red] > colours["after"][blue]
    assert colours["seen"][alpha] == 255
    assert max(colours["seen"][:3]) < 80


def test_it_plays_and_pauses(page, visit):
    seen = visit(page, "#0.0")
    seen.page.locator("#play").click()
    assert seen.text("#play") == "Pause"
    seen.until("app.step === 8")
    assert seen.text("#play") == "Play"
