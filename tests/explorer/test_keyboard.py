"""The pages by keyboard alone: Tab reaches every control in the order of the page, and one sees where it is."""

import pytest

pytestmark = pytest.mark.thorough
# Of a group of radio buttons, Tab reaches one; hidden ones and those that are switched off cannot be used either.
CONTROLS = """() => {
  const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")];
  const groups = new Set();
  window.controls = all.filter((node) => {
    if (node.disabled || !node.checkVisibility({ visibilityProperty: true }) || node.tabIndex < 0) return false;
    if (node.type !== "radio") return true;
    return node.checked || (!document.querySelector(`input[name="${node.name}"]:checked`) && !groups.has(node.name)
      && groups.add(node.name));
  });
  return window.controls.map((node) => node.id || node.name || node.outerHTML.slice(0, 80));
}"""
# The place of the focus among the controls, and whether it is marked, on itself or on the label that is drawn for it.
FOCUS = """() => {
  const node = document.activeElement;
  const isMarked = (one) => one && getComputedStyle(one).outlineStyle !== "none"
    && parseFloat(getComputedStyle(one).outlineWidth) >= 2;
  return [window.controls.indexOf(node), Boolean(isMarked(node) || isMarked(node.nextElementSibling))];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("fixture", ["digits_page", "table_page"])
def test_tab_reaches_all_controls_in_order_and_shows_where_it_is(visit, request, fixture, scheme):
    opened = visit(request.getfixturevalue(fixture), color_scheme=scheme)
    if fixture == "table_page":  # whose rows are drawn again until there are enough draws
        opened.until("document.getElementById('completion-words').textContent.includes('draws are effective')")
    names = opened.page.evaluate(CONTROLS)
    assert len(names) > 8
    seen, unmarked = [], []
    for _ in range(len(names)):
        opened.page.keyboard.press("Tab")
        place, is_marked = opened.page.evaluate(FOCUS)
        seen.append(place)
        if not is_marked:
            unmarked.append(names[place])
    assert [names[place] for place in seen] == names
    assert unmarked == []


def test_shift_tab_goes_back(visit, digits_page):
    opened = visit(digits_page)
    opened.page.evaluate(CONTROLS)
    for _ in range(5):
        opened.page.keyboard.press("Tab")
    place, _ = opened.page.evaluate(FOCUS)
    opened.page.keyboard.press("Shift+Tab")
    assert opened.page.evaluate(FOCUS)[0] == place - 1


def test_arrow_keys_move_sliders(visit, table_page):
    opened = visit(table_page)
    sliders = opened.page.locator("input[type=range]:visible")
    assert sliders.count() > 2
    for number in range(sliders.count()):
        slider = sliders.nth(number)
        slider.press("Home")
        low = float(slider.input_value())
        slider.press("ArrowRight")
        assert float(slider.input_value()) > low
