"""Keras on JAX: `Model.fit` with ReLU, Adam and batches of 128, as in its VAE example, with the network of the race."""

import os
import time

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np
from keras import layers, ops
from race_common import DATA_DIM, EXAMPLE_BATCH, HIDDEN, LATENT_DIM, Curve, load_images, setting


class Sampling(layers.Layer):
    """Draws z, and adds the KL term to the loss."""

    def __init__(self):
        super().__init__()
        self.seed = keras.random.SeedGenerator(0)

    def call(self, inputs):
        mean, log_variance = inputs
        kl = 0.5 * ops.sum(ops.square(mean) + ops.exp(log_variance) - 1 - log_variance, axis=1)
        self.add_loss(ops.mean(kl))
        return mean + ops.exp(log_variance / 2) * keras.random.normal(ops.shape(mean), seed=self.seed)


def reconstruction_loss(x, logits):
    return ops.sum(ops.softplus(logits) - x * logits, axis=1)


def build():
    x = keras.Input((DATA_DIM,))
    h = layers.Dense(HIDDEN, activation="relu")(x)
    z = Sampling()([layers.Dense(LATENT_DIM)(h), layers.Dense(LATENT_DIM)(h)])
    return keras.Model(x, layers.Dense(DATA_DIM)(layers.Dense(HIDDEN, activation="relu")(z)))


if __name__ == "__main__":
    learning_rate, max_epochs = setting()
    keras.utils.set_random_seed(0)
    train, test = (images.astype(np.float32) / 255 for images in load_images())
    curve, start, seconds = Curve(), time.perf_counter(), 0.0
    model = build()
    model.compile(keras.optimizers.Adam(learning_rate), loss=reconstruction_loss)
    for number in range(1, max_epochs + 1):
        model.fit(train, train, batch_size=EXAMPLE_BATCH, verbose=0)
        seconds += time.perf_counter() - start
        bound = -model.evaluate(test, test, batch_size=1000, verbose=0)
        if curve.add(seconds, number * len(train), bound):
            break
        start = time.perf_counter()
    curve.print(f"Keras {keras.__version__} on JAX, rate {learning_rate:g}")
