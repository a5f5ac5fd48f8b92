"""One browser for all tests of a worker, and models that need no training: parameters drawn by NumPy.

Without Playwright or a browser, the tests that need them are skipped.
"""

import shutil
from pathlib import Path

import jax
import numpy as np
import pytest
from sklearn.datasets import load_digits

from aevb import VAE
from aevb.data.datasets import Dataset
from aevb.data.run_data import RunData
from aevb.explorer import write_page
from aevb.fitted import FittedModel, TrainingRecord
from aevb.models import MatrixFormat, join, split, standard_models
from aevb.networks import NetworkKind

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def random_vae(data_dim, *, seed=0, units=None, offset=None, **arguments):
    """Return a model as `load` would, with random parameters."""
    arguments = {"latent_dim": 2, "hidden": (10,), "likelihood": "bernoulli", "progress": False} | arguments
    vae = VAE(**arguments)
    vae._check_parameters()
    if vae.likelihood == "gaussian" and units is None:
        units = np.linspace(-2, 50, data_dim, dtype=np.float32), np.linspace(0.1, 20, data_dim, dtype=np.float32)
    network = NetworkKind(vae.network, vae.image_shape)
    generative, recognition = standard_models(
        data_dim, vae.latent_dim, vae.hidden, vae.likelihood, vae.activation, units=units, network=network
    )
    parameters, constants, skeleton = split((generative, None if vae.learner == "mcem" else recognition))
    generator = np.random.default_rng(seed)

    def draw(leaf):
        return jax.device_put(np.float32(0.6 * generator.normal(size=leaf.shape) / np.sqrt(leaf.shape[-1])))

    models = join(jax.tree.map(draw, parameters), constants, skeleton)
    vae.model_ = FittedModel(
        *models,
        MatrixFormat(data_dim, scale=1 / 255, offset=offset, image_shape=vae.image_shape),
        arguments=vae._arguments(),
        likelihood=vae.likelihood,
        latent_dim=vae.latent_dim,
        dispersion=0.0,
        record=TrainingRecord(learning_rate=1e-3),
    )
    vae.n_features_in_ = data_dim
    return vae


def run_data_of(
    rows, labels=None, *, title="rows", image_shape=None, columns=None, num_test=20, name="mine", light_on_dark=False
):
    """Return rows as the data of a run."""
    dataset = Dataset(name, rows, labels, image_shape, title, columns=columns, light_on_dark=light_on_dark)
    parts = [
        None if labels is None else part
        for part in np.split(np.zeros(len(rows)) if labels is None else labels, [num_test])
    ]
    kind = "none" if image_shape is None else "grey"
    return RunData(dataset, rows, None, rows[num_test:], rows[:num_test], parts[1], parts[0], "test", kind, len(rows))


@pytest.fixture(scope="session", name="random_vae")
def _random_vae():
    return random_vae


@pytest.fixture(scope="session", name="run_data_of")
def _run_data_of():
    return run_data_of


@pytest.fixture(scope="session")
def digits_page(tmp_path_factory):
    """The page of a model of small digits."""
    rows, labels = load_digits(return_X_y=True)
    path = tmp_path_factory.mktemp("digits") / "explorer.html"
    run_data = run_data_of((rows[:200] / 16).astype(np.float32), labels[:200], title="digits", image_shape=(8, 8))
    return write_page(path, random_vae(64, hidden=(20,), activation="tanh"), run_data, name="run")


HOSTILE = "</script><img src=x onerror=alert(1)><!-- <script>"


@pytest.fixture(scope="session")
def table_page(tmp_path_factory):
    """The page of a table with four latent variables and hostile names."""
    generator = np.random.default_rng(0)
    units = np.array([0.0, 10.0, -3.0, 1000.0, 1.0], np.float32), np.array([1.0, 5.0, 0.1, 300.0, 2.0], np.float32)
    rows = (units[0] + units[1] * generator.normal(size=(120, 5))).astype(np.float32)
    labels = np.where(rows[:, 0] > 0, HOSTILE, "'\"&amp;")
    columns = ("age", HOSTILE, "<b>", "ins\u2028ulin", "bmi")
    vae = random_vae(5, latent_dim=4, hidden=(12,), likelihood="gaussian", units=units, activation="tanh")
    path = tmp_path_factory.mktemp("table") / "explorer.html"
    return write_page(path, vae, run_data_of(rows, labels, title=HOSTILE, columns=columns), name=HOSTILE)


FAR = np.array([1.7e9, 0.0, 5000.0])  # of columns


@pytest.fixture(scope="session")
def far_page(tmp_path_factory):
    """The page of a table with two columns far from 0, and its rows."""
    units = np.zeros(3, np.float32), np.array([86400.0, 1.0, 0.01], np.float32)
    rows = FAR + units[1] * np.random.default_rng(0).normal(size=(60, 3))
    vae = random_vae(3, likelihood="gaussian", units=units, offset=FAR, activation="tanh")
    run_data = run_data_of(rows, columns=("time", "size", "pressure"))
    return write_page(tmp_path_factory.mktemp("far") / "explorer.html", vae, run_data), vae, rows


@pytest.fixture(scope="session")
def browser():
    """A headless browser, or a skipped test with the reason."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: aevb[test]")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    with playwright.sync_playwright() as running:
        if path is None and not Path(running.chromium.executable_path).exists():
            pytest.skip("no browser is installed: apt-get install chromium")
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Visit:
    """A page in the browser, and what went wrong there."""

    def __init__(self, browser, path, address="", **options):
        self.context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        self.context.set_default_timeout(60_000)
        self.troubles, self.requests = [], []
        self.page = self.open(path, address)

    def open(self, path, address=""):
        page = self.context.new_page()
        page.on("console", lambda said: self.troubles.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("dialog", lambda dialog: self.troubles.append(f"dialog {dialog.message}") or dialog.dismiss())
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri() + address)
        page.wait_for_selector("html[data-ready]")
        self.rest(page)
        return page

    def rest(self, page=None):
        """Wait until changes are displayed."""
        (page or self.page).evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
        )

    def value(self, expression):
        """Evaluate an expression of `app` and `values`."""
        return self.page.evaluate(
            f"() => {{ const {{ app }} = explorer; const values = app.values; return {expression}; }}"
        )

    def until(self, expression, seconds=60):
        """Wait for an expression to be true; Playwright's own way needs `eval`, which the page forbids."""
        for _ in range(20 * seconds):
            if self.value(expression):
                return self.rest()
            self.page.wait_for_timeout(50)
        raise TimeoutError(expression)

    def vector(self, name):
        """Return an array of the state."""
        return np.array(self.value(f"Array.from(values.{name})"))

    def place(self, selector, across, down):
        """Return a position in an element, given as fractions of its size."""
        box = self.page.locator(selector).bounding_box()
        return box["x"] + across * box["width"], box["y"] + down * box["height"]

    def drag(self, selector, *places):
        """Drag the mouse through positions in an element."""
        mouse = self.page.mouse
        mouse.move(*self.place(selector, *places[0]))
        mouse.down()
        for where in places[1:]:
            mouse.move(*self.place(selector, *where), steps=3)
        mouse.up()
        self.rest()

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def close(self, path):
        self.context.close()
        assert not self.troubles
        assert {url.split("#")[0] for url in self.requests} <= {path.as_uri()}


@pytest.fixture(scope="session")
def calculator(browser, digits_page):
    """A page that stays open, for its functions."""
    visit = Visit(browser, digits_page)
    yield visit.page
    visit.close(digits_page)


@pytest.fixture
def visit(browser):
    """Open pages as a person would; at the end there was no error and no request to anywhere."""
    visits = []

    def start(path, address="", **options):
        visits.append((Visit(browser, path, address, **options), path))
        return visits[-1][0]

    yield start
    for one, path in visits:
        one.close(path)


# ---- tables of mixed columns -----------------------------------------------------------------------------------------

LABELS = (HOSTILE, "'\"&amp;", "<b>three</b>", "4")


def people(num_rows=160, seed=0, holes=0.1):
    """Return a frame with a column of each family, missing entries, and hostile names and labels."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    age = np.round(rng.normal(45, 12, num_rows))
    group = rng.choice(4, num_rows, p=[0.4, 0.3, 0.2, 0.1])
    frame = pd.DataFrame(
        {
            "age": age,
            HOSTILE: np.array(LABELS, object)[group],
            "sex": rng.choice(["F", "M"], num_rows),
            "income": np.exp(rng.normal(8 + age / 40, 0.5)),
            "share": rng.beta(2, 3, num_rows),
            "visits": rng.poisson(2.5, num_rows),
            "purchases": rng.negative_binomial(0.6, 0.02, num_rows),
            "grade": rng.choice(5, num_rows) / 2,
            "error": rng.standard_t(2.5, num_rows),
            "joined": pd.Timestamp("2015-03-01") + pd.to_timedelta(rng.integers(0, 3000, num_rows), "D"),
            "country": np.array([f"country {k}" for k in range(12)], object)[rng.integers(0, 12, num_rows)],
        }
    )
    frame["bill"] = np.where(rng.random(num_rows) < 0.2, 0, np.exp(rng.normal(3, 1, num_rows)).round(2))
    frame["hours"] = np.where(rng.random(num_rows) < 0.4, 40, rng.integers(1, 80, num_rows))
    for name in ("age", HOSTILE, "sex", "purchases", "joined"):
        frame.loc[rng.random(num_rows) < holes, name] = None
    return frame


KINDS = {
    "age": "gaussian", HOSTILE: "categorical", "sex": "binary", "income": "lognormal", "share": "bounded",
    "visits": "poisson", "purchases": "negative-binomial", "grade": "ordinal", "error": "student-t",
    "hours": "histogram", "bill": "quantile-gaussian",
}  # fmt: skip


def random_table(frame=None, *, seed=0, size=0.6, likelihood=None, **arguments):
    """Return a model of a table with random parameters, and its data as those of a run."""
    from aevb.data.frames import TableFormat
    from aevb.fitted.design import Design

    frame = people() if frame is None else frame
    arguments = {"latent_dim": 2, "hidden": (12,), "activation": "tanh", "progress": False} | arguments
    vae = VAE(**arguments)
    vae._check_parameters()
    table = TableFormat.learn(frame, KINDS if likelihood is None else likelihood, vae.missing)
    models = Design.of(vae._arguments(), "table", table, vae.latent_dim).models(jax.random.key(0))
    parameters, constants, skeleton = split(models)
    generator = np.random.default_rng(seed)

    def draw(leaf):
        return jax.device_put(np.float32(size * generator.normal(size=leaf.shape) / np.sqrt(leaf.shape[-1])))

    models = join(jax.tree.map(draw, parameters), constants, skeleton)
    model = FittedModel(*models, table, arguments=vae._arguments(), likelihood="table", latent_dim=vae.latent_dim)
    rows = table.encode(frame)
    dataset = Dataset("people", frame, None, None, HOSTILE, columns=tuple(map(str, frame.columns)))
    run_data = RunData(dataset, frame, None, rows[20:], rows[:20], None, None, "test", "none", len(rows) - 20)
    return model, run_data


@pytest.fixture(scope="session")
def mixed(tmp_path_factory):
    """The page of a table of mixed columns with missing entries and hostile names and labels; and its model."""
    model, run_data = random_table(latent_dim=3)
    path = tmp_path_factory.mktemp("mixed") / "explorer.html"
    return write_page(path, model, run_data, name=HOSTILE), model, run_data


@pytest.fixture(scope="session", name="random_table")
def _random_table():
    return random_table


@pytest.fixture(scope="session", name="people")
def _people():
    return people
