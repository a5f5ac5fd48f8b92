"""The page of a table of mixed columns, used as a person would. Each visit ends without an error or a request."""

import numpy as np
import pytest

from aevb.explorer import write_page
from aevb.explorer.fields import describe_fields
from aevb.fitted import likelihoods

pytestmark = pytest.mark.thorough

HOSTILE = "</script><img src=x onerror=alert(1)><!-- <script>"
DONE = "document.getElementById('completion-words').textContent.includes('draws are effective')"
PHONE = {"viewport": {"width": 390, "height": 760}, "has_touch": True, "is_mobile": True}


def enter(opened, label, text):
    """Type into a field, and leave it."""
    field = opened.page.get_by_label(label, exact=True)
    field.fill(text)
    field.press("Tab")
    opened.rest()


def place_of(model, name):
    return [column.name for column in model.format.columns].index(name)


def said(opened, place):
    """Return what the page expects of a column, in words."""
    return opened.page.locator(f"#said-{place}").text_content()


def known(opened):
    return np.flatnonzero(opened.vector("missing") == 0).tolist()


def test_columns_are_set_in_the_users_units_and_the_others_follow(visit, mixed):
    path, model, _ = mixed
    opened = visit(path)
    assert opened.text("#title") == HOSTILE
    assert opened.page.locator("#columns .name").nth(1).inner_text() == HOSTILE
    assert known(opened) == []
    assert "Nothing is known yet" in opened.text("#known-words")
    assert not opened.page.locator("#bound-block").is_visible()
    opened.until(DONE)
    before = said(opened, place_of(model, "age"))
    assert before.startswith("50 % ")

    page = opened.page
    enter(opened, "income: value", "5000")
    page.get_by_label("sex: value").get_by_label("M", exact=True).check()
    page.get_by_label("country: value").select_option("country 7")
    page.get_by_label(f"{HOSTILE}: value").select_option(HOSTILE)
    enter(opened, "joined: value", "2020-02-29")
    enter(opened, "visits: value", "3")
    opened.rest()
    stored = {column.name: column.column.stored for column in model.format.columns}
    x, date = opened.vector("x"), model.format.columns[place_of(model, "joined")]
    assert x[place_of(model, "income")] == pytest.approx(stored["income"](np.array([5000.0]))[0], abs=1e-5)
    assert (x[place_of(model, "sex")], x[place_of(model, "visits")]) == (1, 3)
    assert model.format.columns[1].levels[int(x[1])] == HOSTILE
    ticks = np.array(["2020-02-29"], "datetime64[s]").astype(f"datetime64[{date.storage.unit}]").astype(np.int64)
    assert x[place_of(model, "joined")] == pytest.approx(
        stored["joined"]((ticks - date.origin) / date.step)[0], abs=1e-5
    )
    names = ["income", "sex", "country", HOSTILE, "joined", "visits"]
    assert known(opened) == sorted(place_of(model, name) for name in names)
    assert f"6 of {len(model.format.columns)} columns are known" in opened.text("#known-words")
    opened.until(DONE)
    assert said(opened, place_of(model, "age")) != before
    assert said(opened, place_of(model, "sex")).startswith("without it: ")
    rows = page.locator("#completion-tiles tbody tr")
    assert rows.count() == 8
    assert {rows.nth(k).locator("td").nth(2).inner_text() for k in range(8)} == {HOSTILE}
    assert page.locator("img").count() == 0

    page.get_by_label("income is known").uncheck()
    opened.rest()
    assert place_of(model, "income") not in known(opened)
    opened.until(DONE)
    expected = opened.value(f"app.prediction.of({place_of(model, 'income')}).quantiles[2]")
    page.get_by_label("income is known").check()  # at what was expected
    opened.rest()
    assert opened.vector("x")[place_of(model, "income")] == pytest.approx(expected, rel=1e-5)
    enter(opened, "visits: value", "")
    assert place_of(model, "visits") not in known(opened)
    page.get_by_role("button", name="Clear").click()
    opened.rest()
    assert known(opened) == []


def test_real_rows_keep_their_gaps_and_have_the_bound_of_the_library(visit, mixed):
    path, model, run_data = mixed
    rows = np.concatenate([run_data.test, run_data.train])
    opened = visit(path)
    for number in (np.flatnonzero(np.isnan(rows).any(axis=1))[0], np.flatnonzero(~np.isnan(rows).any(axis=1))[0]):
        opened.value(f"app.pick({number})")
        opened.rest()
        assert known(opened) == np.flatnonzero(~np.isnan(rows[number])).tolist()
        found = float(opened.text("#bound").replace("−", "-"))
        expected = likelihoods.lower_bound_terms(model, rows[[number]], 4000).lower_bound[0]
        error = float(opened.text("#bound-error").split(" from")[0].replace("±", ""))
        assert found == pytest.approx(expected, abs=4 * error + 0.15)
        opened.until(DONE)
    assert "without it" in opened.text("#known-words")
    opened.page.get_by_role("button", name="Load a real row").click()
    opened.rest()
    assert opened.value("values.source") is not None
    opened.page.get_by_role("button", name="Draw a row").click()
    opened.rest()
    assert opened.value("values.source") is None
    assert known(opened) == list(range(len(model.format.columns)))
    x = opened.vector("x")
    levels = [len(column.levels) for column in model.format.columns]
    assert all(x[i] in range(count) for i, count in enumerate(levels) if count)
    assert x[place_of(model, "purchases")] % 1 == 0


def test_moving_z_shows_what_is_expected_there(visit, mixed):
    path, model, _ = mixed
    opened = visit(path)
    opened.until(DONE)
    sex = place_of(model, "sex")
    opened.drag("#plane", (0.5, 0.5), (0.7, 0.3))
    assert "which you chose" in opened.text("#known-words")
    p = np.asarray(model.generative.decoder(opened.vector("z").astype(np.float32)).statistics())
    place = 1 + len(model.format.columns[1].levels)  # of the probability of M
    shares = opened.page.locator("#columns .field").nth(sex).locator(".share").all_inner_texts()
    assert float(shares[1].rstrip(" %")) == pytest.approx(100 * p[place], abs=0.7)
    opened.page.get_by_role("button", name="Back to what is known").click()
    opened.until(DONE)
    assert "Nothing is known" in opened.text("#known-words")


def test_a_file_may_have_some_of_the_columns_in_any_order(visit, mixed):
    path, model, _ = mixed
    opened = visit(path)
    quoted = '"' + HOSTILE + '"'
    csv = f'joined,"{HOSTILE}",income,sex,purchases\r\n2016-01-02,{quoted},1234.5,Q,NA\r\n'
    opened.page.locator("#file").set_input_files({"name": "<b>.csv", "mimeType": "text/csv", "buffer": csv.encode()})
    opened.until("values.missing[1] === 0")
    assert known(opened) == sorted(place_of(model, name) for name in ("joined", HOSTILE, "income"))
    assert opened.text("#file-words") == "<b>.csv: not known here, and left open: sex."
    assert opened.page.get_by_label("joined: value").input_value() == "2016-01-02"
    opened.page.locator("#file").set_input_files({"name": "x.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n"})
    opened.until("document.getElementById('file-words').textContent.includes('cannot be used')")


def test_a_link_restores_what_is_known_and_bad_ones_are_made_valid(visit, mixed):
    path, model, _ = mixed
    opened = visit(path)
    enter(opened, "age: value", "61")
    opened.page.get_by_label("country: value").select_option("country 3")
    opened.page.get_by_label("Colour by").select_option("income")
    opened.until(DONE)
    opened.page.get_by_role("button", name="Share this view").click()
    link = opened.page.get_by_label("Link", exact=True).input_value()
    again = visit(path, "#" + link.split("#", 1)[1])
    again.until(DONE)
    assert known(again) == known(opened)
    assert again.page.get_by_label("age: value").input_value() == "61"
    assert again.page.get_by_label("Colour by").input_value() == str(place_of(model, "income"))
    assert said(again, place_of(model, "share")) == said(opened, place_of(model, "share"))
    bad = opened.value(
        """(() => { const x = new Float32Array(app.D).fill(-7.3e30);
          const text = btoa(String.fromCharCode(...new Uint8Array(x.buffer)));
          return text.replaceAll("+", "-").replaceAll("/", "_"); })()"""
    )
    broken = visit(path, f"#xf={bad}&c=999&l=5&s=1112")
    broken.until("[...values.x].every((u, i) => Number.isFinite(app.fields[i].shown(u)))")
    levels = [max(len(column.levels), 0) for column in model.format.columns]
    assert all(u in range(count) for u, count in zip(broken.vector("x"), levels, strict=True) if count)


def test_colours_of_the_plane_are_those_of_a_column(visit, mixed):
    opened = visit(mixed[0])
    menu = opened.page.get_by_label("Colour by")
    assert "country" in menu.inner_text()
    menu.select_option("sex")
    opened.rest()
    assert opened.page.locator("#legend .chip").all_inner_texts() == ["F", "M"]
    opened.page.locator("#legend .chip").first.click()
    opened.rest()
    assert opened.value("values.label") == 0
    menu.select_option("joined")
    opened.rest()
    assert opened.value("values.label") == -1
    assert "2015-" in opened.text("#legend")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_on_a_phone_and_by_keyboard(visit, mixed, scheme):
    path, model, _ = mixed
    opened = visit(path, **PHONE, color_scheme=scheme)
    assert opened.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    keys = opened.page.keyboard
    opened.page.get_by_label("age is known").focus()
    keys.press("Space")
    opened.rest()
    assert known(opened) == [place_of(model, "age")]
    keys.press("Tab")  # to the slider
    before = opened.vector("x")[0]
    keys.press("ArrowRight")
    opened.rest()
    assert opened.vector("x")[0] > before
    keys.press("Tab")  # to the number
    keys.type("3")
    keys.press("Tab")
    opened.rest()
    opened.page.get_by_label("country: value").focus()
    keys.type("country 5")
    opened.until(f"values.missing[{place_of(model, 'country')}] === 0")
    unnamed = opened.page.evaluate(
        """() => [...document.querySelectorAll("button, input:not([type=file]), select, [tabindex]")]
          .filter((node) => !node.getAttribute("aria-label") && !node.textContent.trim())
          .filter((node) => !node.closest("label")?.textContent.trim()).map((node) => node.outerHTML)"""
    )
    assert unnamed == []


def test_whether_an_entry_is_missing_is_a_column_if_it_is_modeled(visit, tmp_path, random_table):
    model, run_data = random_table(missing="modeled")
    opened = visit(write_page(tmp_path / "explorer.html", model, run_data))
    age, names = place_of(model, "age"), [column.name for column in model.format.model_columns]
    flag = names.index("age is missing")
    enter(opened, "age: value", "50")
    assert known(opened) == [age, flag]
    assert opened.vector("x")[flag] == 0
    opened.page.get_by_label("age is missing: value").get_by_label("yes").check()
    opened.rest()
    assert known(opened) == [flag]
    rows = np.concatenate([run_data.test, run_data.train])
    opened.value(f"app.pick({np.flatnonzero(np.isnan(rows[:, age]))[0]})")
    opened.rest()
    assert opened.vector("x")[flag] == 1
    assert age not in known(opened)


def test_a_table_without_an_encoder_only_decodes(visit, tmp_path, random_table, people):
    frame = people(40, holes=0.0)[["age", "sex", "visits"]]
    model, run_data = random_table(frame, likelihood="auto", learner="mcem")
    opened = visit(write_page(tmp_path / "explorer.html", model, run_data, max_rows=10))
    assert "without an encoder" in opened.text("#pad-card")
    before = said(opened, 0)
    opened.drag("#plane", (0.5, 0.5), (0.75, 0.3))
    assert said(opened, 0) != before


def test_fields_are_in_the_users_units(mixed):
    _, model, run_data = mixed
    fields = {field["name"]: field for field in describe_fields(model, run_data.train)}
    assert fields["age"]["digits"] == 0
    assert fields["age"]["is_whole"]
    assert (fields["joined"]["kind"], fields["joined"]["has_time"]) == ("date", False)
    assert (fields["purchases"]["scale"], fields["visits"]["scale"], fields["income"]["scale"]) == (
        "log1p", "linear", "log"
    )  # fmt: skip
    first = np.datetime64("2015-03-01").astype("datetime64[ms]").astype(int)
    assert first <= fields["joined"]["observed"][0] <= fields["joined"]["low"] < fields["joined"]["high"]
    assert fields["grade"]["levels"] == ["0.0", "0.5", "1.0", "1.5", "2.0"]


def test_many_columns_of_numbers_are_a_curve(visit, tmp_path, random_vae, run_data_of):
    rows = np.random.default_rng(0).normal(size=(40, 70)).astype(np.float32)
    units = np.zeros(70, np.float32), np.ones(70, np.float32)
    vae = random_vae(70, likelihood="gaussian", units=units)
    opened = visit(write_page(tmp_path / "explorer.html", vae, run_data_of(rows)))
    assert known(opened) == list(range(70))
    before = opened.vector("x")
    opened.drag("#columns .curve", (0.2, 0.1), (0.25, 0.1))
    after = opened.vector("x")
    changed = np.flatnonzero(after != before)
    assert len(changed) > 1
    drawn = rows.mean(axis=0) + 0.8 * 3.2 * rows.std(axis=0)  # a tenth below the upper end
    np.testing.assert_allclose(after[changed], drawn[changed], atol=0.06)
    assert opened.page.locator("#bound-block").is_visible()
