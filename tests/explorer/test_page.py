"""The page, driven as a person would. Each visit ends with no console error and no request to anywhere."""

import io

import numpy as np
import pytest
from PIL import Image

from aevb.explorer import write_page

pytestmark = pytest.mark.thorough

COMPLETED = "document.getElementById('completion-words').textContent.includes('draws are effective')"


def written(text):
    return float(text.replace("−", "-").replace(",", ""))


def change(opened, label, text):
    """Type into a field, and leave it."""
    field = opened.page.get_by_label(label, exact=True)
    field.fill(text)
    field.press("Tab")
    opened.rest()


def pixels(opened, selector):
    """Return the grey levels of a canvas."""
    return np.array(
        opened.page.evaluate(
            """(selector) => {
              const canvas = document.querySelector(selector);
              const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
              return [...data].filter((_, i) => i % 4 === 0);
            }""",
            selector,
        )
    )


def shown_mean(opened):
    """Return the expected output: the decoder's mean at z, as the page draws it in light colours."""
    mean = np.array(opened.value("[...app.model.decode(values.z).mu]"))
    low, high = 255, 0x14
    return low + np.round(255 * mean) / 255 * (high - low)


def test_dragging_moves_z_and_the_output_follows(visit, digits_page):
    opened = visit(digits_page)
    before = opened.vector("z")
    opened.drag("#plane", (0.5, 0.5), (0.62, 0.41), (0.75, 0.25))
    view = opened.value("values.view")
    z = opened.vector("z")
    np.testing.assert_allclose(
        z, [view["x"] + 0.5 * view["span"], view["y"] + 0.5 * view["span"]], atol=0.02 * view["span"]
    )
    assert np.abs(z - before).max() > 0.1
    np.testing.assert_allclose(pixels(opened, "#output"), shown_mean(opened), atol=1.5)
    assert f"({z[0]:.2f}, {z[1]:.2f})".replace("-", "−") in opened.text("#z")
    opened.page.get_by_label("show a random draw instead of the mean").check()
    opened.rest()
    assert set(np.unique(pixels(opened, "#output"))) <= {0x14, 255}


def test_a_dot_shows_its_picture_and_can_be_used_as_input(visit, digits_page):
    opened = visit(digits_page)
    opened.page.get_by_label("manifold").uncheck()
    number = 7
    # Where no other dot is near.
    x, y = opened.page.evaluate(
        """([number]) => { const { app } = explorer; const box = document.getElementById("plane");
          app.state.set({ view: { x: app.code(number)[0], y: app.code(number)[1], span: 0.05 } });
          const { left, top, width } = box.getBoundingClientRect(); return [left + width / 2, top + width / 2]; }""",
        [number],
    )
    opened.rest()
    opened.page.mouse.move(x, y)
    opened.page.locator("#tip").wait_for(state="visible")
    assert "held out" in opened.text("#tip")
    opened.page.mouse.click(x, y)
    opened.rest()
    assert opened.value("values.source") == number
    np.testing.assert_allclose(opened.vector("z"), opened.value("[...app.code(7)]"), atol=1e-3)
    np.testing.assert_allclose(opened.vector("x"), opened.value("[...app.point(7)]"))
    bound, reconstruction, kl = (written(opened.text(f"#{name}")) for name in ("bound", "reconstruction", "kl"))
    assert bound == pytest.approx(reconstruction - kl, abs=0.11)
    assert kl > 0
    opened.page.get_by_role("button", name="3", exact=True).click()
    opened.rest()
    assert opened.value("values.label") == 3


def test_epsilon_is_drawn_again_and_z_is_mu_plus_sigma_epsilon(visit, digits_page):
    opened = visit(digits_page)
    seed, draws = opened.value("values.epsilonSeed"), opened.value("[...app.draws.z]")
    opened.page.get_by_role("button", name="Draw ε").click()
    opened.until(f"values.epsilonSeed !== {seed}")
    expected = opened.value("[...app.q.mu].map((mu, j) => mu + app.q.sigma[j] * app.epsilon()[j])")
    np.testing.assert_allclose(opened.vector("z"), expected, atol=1e-5)
    assert not np.isclose(opened.value("[...app.draws.z]"), draws).any()
    opened.page.get_by_role("button", name="Zoom to q(z|x)").click()
    opened.rest()
    assert opened.value("values.view.span < 6 * Math.max(...app.q.sigma)")


def test_drawing_erasing_and_noise(visit, digits_page):
    opened = visit(digits_page)
    opened.page.get_by_role("button", name="Clear").click()
    opened.rest()
    assert opened.vector("x").sum() == 0
    opened.drag("#pad", (0.5, 0.15), (0.5, 0.85))
    drawn = opened.vector("x")
    assert drawn.reshape(8, 8)[2:6, 3:5].min() > 0.3
    assert drawn.reshape(8, 8)[:, 0].max() == 0
    np.testing.assert_allclose(opened.vector("z"), opened.value("[...app.model.encode(values.x).mu]"), atol=1e-5)

    opened.page.get_by_label("Mark as missing").check()
    opened.drag("#pad", (0.1, 0.75), (0.9, 0.75))
    missing = opened.vector("missing").reshape(8, 8)
    assert missing[6].sum() >= 6
    assert not missing[:4].any()
    opened.until(COMPLETED)
    opened.rest()
    tiles = opened.page.locator("#completion-tiles .tile")
    assert tiles.count() == 8
    assert not opened.page.locator("#bound-block").is_visible()
    assert opened.value("app.particles.length") == 8
    tiles.nth(3).click()
    opened.rest()
    np.testing.assert_allclose(opened.vector("z"), opened.value("[...app.particles[3]]"), atol=1e-6)
    opened.page.get_by_role("button", name="Undo").click()
    opened.rest()
    assert not opened.vector("missing").any()
    assert opened.page.locator("#bound-block").is_visible()

    opened.page.get_by_label("Noise").fill("0.5")
    opened.page.get_by_role("button", name="Add noise").click()
    opened.rest()
    assert 8 < np.sum(opened.vector("x") != drawn) < 40  # half of them are replaced, half of these by their old values
    opened.until(COMPLETED)
    opened.page.get_by_role("button", name="Undo").click()
    opened.rest()
    np.testing.assert_array_equal(opened.vector("x"), drawn)


def test_interpolation_traversals_samples_and_temperature(visit, digits_page):
    opened = visit(digits_page)
    opened.page.get_by_label("How far from A to B").fill("0.25")
    opened.rest()
    expected = 0.75 * opened.vector("from") + 0.25 * opened.vector("to")
    np.testing.assert_allclose(opened.vector("z"), expected, atol=1e-5)
    opened.page.get_by_role("button", name="Set B").click()
    opened.rest()
    np.testing.assert_allclose(opened.vector("to"), expected, atol=1e-5)
    opened.page.get_by_role("button", name="z₂ = −1.5").click()
    opened.rest()
    np.testing.assert_allclose(opened.vector("z"), [expected[0], -1.5], atol=1e-5)
    hot = np.array(opened.value("app.samples.map((z) => [...z])"))
    opened.page.get_by_label("temperature").fill("0.5")
    opened.rest()
    np.testing.assert_allclose(opened.value("app.samples.map((z) => [...z])"), hot / 2, atol=1e-6)
    opened.page.get_by_role("button", name="Draw again").click()
    opened.rest()
    opened.page.locator("#samples-tiles .tile").nth(5).click()
    opened.rest()
    np.testing.assert_allclose(opened.vector("z"), opened.value("[...app.samples[5]]"))


STATE = """(() => { const plain = {}; for (const [name, value] of Object.entries(values))
  plain[name] = ArrayBuffer.isView(value) ? [...value] : value; return plain; })()"""


def test_a_shared_link_restores_the_view(visit, digits_page):
    opened = visit(digits_page)
    opened.drag("#pad", (0.2, 0.2), (0.8, 0.3))
    opened.page.get_by_label("Mark as missing").check()
    opened.drag("#pad", (0.1, 0.9), (0.6, 0.9))
    opened.until(COMPLETED)
    opened.drag("#plane", (0.5, 0.5), (0.3, 0.6))
    opened.page.get_by_label("Zoom in").click()
    opened.page.get_by_label("temperature").fill("0.7")
    opened.page.get_by_label("data", exact=True).uncheck()
    opened.page.get_by_role("button", name="Set A").click()
    opened.rest()
    opened.page.get_by_role("button", name="Share this view").click()
    link = opened.page.get_by_label("Link", exact=True).input_value()
    before = opened.value(STATE)
    assert before["missing"] != [0] * 64
    again = visit(digits_page, "#" + link.split("#", 1)[1])
    again.until(COMPLETED)
    after = again.value(STATE)
    for name, value in before.items():
        wanted = list(value.values()) if isinstance(value, dict) else value
        found = list(after[name].values()) if isinstance(value, dict) else after[name]
        if isinstance(wanted, str | bool) or wanted is None:
            assert found == wanted, name
        else:
            np.testing.assert_allclose(found, wanted, atol=1e-4, err_msg=name)
    assert not again.page.get_by_label("data", exact=True).is_checked()


@pytest.mark.parametrize(
    "address", ["#z=1e99_nan&x=99999&xb=%00&m=____&p=axes.9.9&v=0_0_-1&e=x&ab=1~2&s=9&l=77", "#<img src=x>"]
)
def test_a_hostile_url_is_ignored(visit, digits_page, address):
    opened = visit(digits_page, address)
    assert opened.value("[...values.z].every(Number.isFinite) && values.first === 0 && values.label === -1")


def test_keyboard_only(visit, digits_page):
    opened = visit(digits_page)
    keys = opened.page.keyboard

    def tab_to(selector):
        for _ in range(80):
            keys.press("Tab")
            if opened.page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"{selector} cannot be reached by keys")

    tab_to("#plane")
    before, view = opened.vector("z"), opened.value("values.view.span")
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowUp"):
        keys.press(key)
    opened.rest()
    np.testing.assert_allclose(opened.vector("z") - before, [view / 20, view / 8], atol=1e-4)
    keys.press("+")
    opened.rest()
    assert opened.value("values.view.span") == pytest.approx(view / 1.5)
    keys.press("Enter")
    opened.rest()
    distances = np.array(
        opened.value(
            "Array.from({ length: app.numPoints }, (_, i) => Math.hypot(...app.code(i).map((c, j) => c - values.z[j])))"
        )
    )
    assert distances.argmin() == opened.value("values.source")
    opened.until("document.getElementById('status').textContent.includes('nearest datapoint is labelled')")
    tab_to("#clear")
    keys.press("Enter")
    tab_to("#pad")
    keys.press("Space")
    keys.press("Shift+ArrowDown")
    opened.rest()
    assert opened.vector("x").reshape(8, 8)[4:6, 4].min() > 0.5
    tab_to("input[name=tool]")
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    assert opened.page.get_by_label("Mark as missing").is_checked()
    tab_to("#roll")
    seed = opened.value("values.epsilonSeed")
    keys.press("Enter")
    opened.rest()
    assert opened.value("values.epsilonSeed") != seed
    tab_to("#temperature")
    keys.press("ArrowLeft")
    opened.rest()
    assert opened.value("values.temperature") == pytest.approx(0.95)


def test_every_control_has_a_name(visit, table_page):
    unnamed = visit(table_page).page.evaluate(
        """() => [...document.querySelectorAll("button, input:not([type=file]), select, [tabindex]")]
          .filter((node) => !node.getAttribute("aria-label") && !node.textContent.trim())
          .filter((node) => !node.closest("label")?.textContent.trim()).map((node) => node.outerHTML)"""
    )
    assert unnamed == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(visit, digits_page, scheme):
    phone = {"viewport": {"width": 390, "height": 760}, "has_touch": True, "is_mobile": True, "color_scheme": scheme}
    opened = visit(digits_page, **phone)
    assert opened.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    touch = opened.context.new_cdp_session(opened.page)

    def swipe(selector, *places):
        opened.page.locator(selector).scroll_into_view_if_needed()
        points = [dict(zip("xy", opened.place(selector, *place), strict=True)) for place in places]
        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [points[0]]})
        for point in points[1:]:
            touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        opened.rest()

    scrolled = opened.page.evaluate("scrollY")
    swipe("#plane", (0.5, 0.5), (0.6, 0.5), (0.8, 0.5))
    view, z = opened.value("values.view"), opened.vector("z")
    assert z[0] == pytest.approx(view["x"] + 0.6 * view["span"], abs=0.05 * view["span"])
    assert opened.page.evaluate("scrollY") == scrolled  # the finger dragged z, not the page
    opened.page.get_by_role("button", name="Clear").tap()
    swipe("#pad", (0.5, 0.2), (0.5, 0.5), (0.5, 0.8))
    assert opened.vector("x").max() > 0.9
    assert pixels(opened, "#input")[0] == (255 if scheme == "light" else 0x10)


def test_the_reader_can_choose_dark_mode(visit, digits_page):
    opened = visit(digits_page)
    opened.page.get_by_role("button", name="Dark colours").click()
    opened.rest()
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    assert pixels(opened, "#output").min() >= 0x10


def test_a_file_can_be_dropped_in(visit, digits_page):
    opened = visit(digits_page)
    ink = np.full((80, 80), 255, np.uint8)
    ink[10:70, 30:50] = 0  # dark on light paper: a one
    file = io.BytesIO()
    Image.fromarray(ink).save(file, "PNG")
    opened.page.locator("#file").set_input_files(
        {"name": "one.png", "mimeType": "image/png", "buffer": file.getvalue()}
    )
    opened.until("values.source === null")
    x = opened.vector("x").reshape(8, 8)
    assert x[2:6, 3:5].min() > 0.9
    assert x[:, 0].max() < 0.1
    assert opened.text("#file-words").startswith("one.png: dark pixels are large values, as in the data.")
    opened.page.get_by_role("button", name="Invert").click()
    opened.until("values.x[0] > 0.9")
    np.testing.assert_allclose(opened.vector("x").reshape(8, 8), 1 - x, atol=1e-6)
    opened.page.get_by_role("button", name="Invert").click()
    opened.until("values.x[0] < 0.1")
    opened.page.locator("#file").set_input_files({"name": "<b>.png", "mimeType": "image/png", "buffer": b"no picture"})
    opened.until("document.getElementById('file-words').textContent.includes('cannot')")
    assert opened.text("#file-words").startswith("<b>.png cannot be used")


def test_tables_with_hostile_names_and_four_latent_variables(visit, table_page):
    opened = visit(table_page)
    hostile = "</script><img src=x onerror=alert(1)><!-- <script>"
    assert opened.text("#title") == hostile
    assert opened.page.locator("#columns .name").nth(1).inner_text() == hostile
    assert opened.page.locator("#legend .chip").count() == 2
    assert opened.page.locator("img").count() == 0

    opened.page.get_by_role("button", name="Load a real row").click()
    opened.rest()
    assert not opened.vector("missing").any()
    change(opened, "age: value", "1.2")
    assert opened.vector("x")[0] == pytest.approx(1.2, abs=1e-6)
    np.testing.assert_allclose(opened.vector("z"), opened.value("[...app.model.encode(values.x).mu]"), atol=1e-4)
    opened.page.get_by_label("bmi is known").uncheck()
    opened.until("values.missing[4] === 1")
    opened.until(COMPLETED)
    assert opened.page.locator("#completion-tiles tbody tr").count() == 8
    opened.page.get_by_label("bmi is known").check()
    opened.rest()
    csv = "bmi,<b>,age,ins\u2028ulin," + hostile + "\n7,-3.1,0.5,,12\n"
    opened.page.locator("#file").set_input_files({"name": "row.csv", "mimeType": "text/csv", "buffer": csv.encode()})
    opened.until("values.missing[3] === 1")
    np.testing.assert_allclose(opened.vector("x")[[0, 1, 2, 4]], [0.5, 12, -3.1, 7], rtol=1e-6)

    sliders = opened.page.locator("#rest input")
    assert sliders.count() == 2
    carried = opened.value("app.data.carried")
    order = opened.value("app.basis.names.map((name) => name.split(' ')[0])")
    assert order == ["z" + "₁₂₃₄"[j] for j in np.argsort(carried)[::-1]]
    sliders.first.fill("1.5")
    opened.rest()
    assert opened.vector("z")[np.argsort(carried)[::-1][2]] == pytest.approx(1.5, abs=0.02)
    rest = opened.value("[...app.basis.coordinates(values.z)].slice(2)")
    opened.drag("#plane", (0.5, 0.5), (0.6, 0.6))
    np.testing.assert_allclose(opened.value("[...app.basis.coordinates(values.z)].slice(2)"), rest, atol=1e-5)
    opened.page.locator("#basis").select_option("pca")
    opened.rest()
    z = opened.vector("z")
    np.testing.assert_allclose(opened.value("[...app.basis.latent(app.basis.coordinates(values.z))]"), z, atol=1e-5)
    rest = opened.value("[...app.basis.coordinates(values.z)].slice(2)")
    opened.drag("#plane", (0.5, 0.5), (0.4, 0.45))
    np.testing.assert_allclose(opened.value("[...app.basis.coordinates(values.z)].slice(2)"), rest, atol=1e-5)
    assert np.abs(opened.vector("z") - z).max() > 0.01
    opened.page.locator("#first").select_option("2")
    opened.page.locator("#second").select_option("2")
    opened.rest()
    assert opened.value("[values.first, values.second]") == [1, 2]  # the other axis changed


def test_columns_far_from_zero_are_in_the_units_of_the_data(visit, far_page):
    path, vae, rows = far_page
    opened = visit(path)
    shown = opened.page.locator("#columns .entry")
    opened.value("app.pick(0)")
    opened.rest()
    values = [float(shown.nth(place).input_value()) for place in range(3)]
    assert (np.abs(values - rows[0]) < [0.6, 0.006, 0.0006]).all()

    row = rows[30]
    csv = "pressure,time,size\n" + ",".join(str(value) for value in row[[2, 0, 1]]) + "\n"
    opened.page.locator("#file").set_input_files({"name": "row.csv", "mimeType": "text/csv", "buffer": csv.encode()})
    opened.until("values.source === null")
    np.testing.assert_allclose(opened.vector("x"), row - vae.offset_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(opened.vector("z"), vae.transform(row[None])[0], atol=2e-3)
    opened.page.get_by_label("time is known").uncheck()
    opened.rest()
    opened.value("app.moveTo(app.values.z.slice())")
    opened.rest()
    expected = vae.inverse_transform(opened.vector("z")[None])[0, 0]
    std = opened.value("app.model.decode(values.z).sigma[0]")
    median = written(shown.first.get_attribute("placeholder"))
    assert median == pytest.approx(expected, rel=0, abs=4 * 1.25 * std / np.sqrt(400) + 200)  # weights of eleven bits
    change(opened, "time: value", "1700050000")
    assert opened.vector("x")[0] == pytest.approx(50_000, abs=1)
    opened.page.get_by_role("slider", name="time").fill("0.5")
    opened.rest()
    middle = np.mean(opened.value("app.fields[0].ends"))
    assert float(shown.first.input_value()) == pytest.approx(middle, abs=1)


@pytest.mark.parametrize("likelihood", ["sigmoid-gaussian", "gaussian"])
def test_files_with_the_polarity_of_the_data_are_not_inverted(visit, tmp_path, random_vae, run_data_of, likelihood):
    """Dark faces, light ones, and one with a light margin: none is inverted."""
    generator = np.random.default_rng(0)
    rows = np.concatenate([generator.integers(low, low + 100, (10, 64)) for low in (0, 150)]).astype(np.uint8)
    rows[3].reshape(8, 8)[1:-1, 1:-1], rows[3].reshape(8, 8)[0] = 20, 250
    units = tuple(np.full(64, value, np.float32) for value in (0.5, 0.2))
    vae = random_vae(64, likelihood=likelihood, units=units if likelihood == "gaussian" else None)
    run_data = run_data_of(rows, image_shape=(8, 8), num_test=10, light_on_dark=True)
    opened = visit(write_page(tmp_path / "faces.html", vae, run_data))
    for number in (0, 3, 15):
        file = io.BytesIO()
        Image.fromarray(rows[number].reshape(8, 8)).save(file, "PNG")
        name = f"face{number}.png"
        opened.page.locator("#file").set_input_files({"name": name, "mimeType": "image/png", "buffer": file.getvalue()})
        opened.until(f"document.getElementById('file-words').textContent.startsWith('{name}: light')")
        np.testing.assert_allclose(opened.vector("x"), rows[number] / 255, atol=1e-6)
