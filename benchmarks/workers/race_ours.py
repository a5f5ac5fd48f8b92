"""aevb by default: `VAE.fit` with the test images as validation data, whose evaluation is part of the time."""

import time

from race_common import LATENT_DIM, Curve, load_images, setting

import aevb

if __name__ == "__main__":
    _, max_epochs = setting()
    train, test = load_images()
    curve, start = Curve(), time.perf_counter()

    def record(row):
        if curve.add(time.perf_counter() - start, row["samples"], row["validation_lower_bound"]):
            raise KeyboardInterrupt

    vae = aevb.VAE(LATENT_DIM, likelihood="bernoulli", max_epochs=max_epochs, progress=False)
    vae.fit(train, validation_data=test, callbacks=[record])
    curve.print(f"aevb {aevb.__version__}, by default")
