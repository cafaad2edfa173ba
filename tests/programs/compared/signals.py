"""Filters, windows, sums along time, and paddings."""

import numpy as np

from tests.oracles.program import normal, number, program, uniform

TIME = np.linspace(0.0, 1.0, 12)


@program(normal(12), normal(3))
def convolution_by_slices(np, signal, kernel):
    return sum(kernel[k] * signal[k : k + 10] for k in range(3))


@program(normal(5, 5), normal(2, 2))
def image_convolution_by_slices(np, image, kernel):
    out = 0.0
    for i in range(2):
        for j in range(2):
            out = out + kernel[i, j] * image[i : i + 4, j : j + 4]
    return np.sum(np.tanh(out))


@program(normal(10), number(0.5, 2))
def moving_average_by_cumulative_sums(np, signal, gain):
    total = np.concatenate([np.zeros(1), np.cumsum(gain * signal)])
    return (total[4:] - total[:-4]) / 4


@program(normal(8), number(0.1, 0.9))
def exponential_smoothing(np, signal, share):
    level, levels = signal[0], []
    for t in range(8):
        level = share * signal[t] + (1 - share) * level
        levels.append(level)
    return np.stack(levels)


@program(normal(12), normal(4), normal(12))
def matched_error_of_a_filter(np, signal, taps, wanted):
    padded = np.pad(signal, (3, 0), mode="constant")
    out = sum(taps[k] * padded[3 - k : 15 - k] for k in range(4))
    return np.mean((out - wanted) ** 2)


@program(normal(8), normal(3), autograd=0)
def convolution_in_full(np, signal, kernel):
    return np.convolve(signal, kernel)


@program(normal(12), uniform(0.2, 0.8, 1))
def windowed_energy(np, signal, mix):
    window = mix - (1 - mix) * np.cos(2 * np.pi * np.arange(12) / 11)
    return np.sum((signal * window) ** 2) / np.sum(window**2)


@program(normal(12))
def overlapping_frames(np, signal):
    frames = signal[np.arange(0, 9, 4)[:, None] + np.arange(4)]
    return np.sum(np.log(1 + np.mean(frames**2, axis=1)))


@program(number(0.5, 2), number(1, 3), number(0, 1), normal(12))
def misfit_of_a_sinusoid(np, amplitude, frequency, phase, signal):
    return np.sum((amplitude * np.sin(2 * np.pi * frequency * TIME + phase) - signal) ** 2)


@program(normal(8), number(0.5, 1.5))
def power_spectrum_by_a_cosine_matrix(np, signal, gain):
    angle = 2 * np.pi * np.outer(np.arange(8), np.arange(8)) / 8
    real, imaginary = np.cos(angle) @ signal, np.sin(angle) @ signal
    return gain * np.sum(np.log1p(real**2 + imaginary**2))


@program(normal(8))
def energy_of_a_haar_transform(np, signal):
    energy, level = 0.0, signal
    while level.shape[0] > 1:
        pairs = np.reshape(level, (-1, 2))
        energy = energy + np.sum(np.abs(pairs[:, 0] - pairs[:, 1]) ** 1.5)
        level = (pairs[:, 0] + pairs[:, 1]) / np.sqrt(2.0)
    return energy + level[0] ** 2


@program(normal(10), number(0.5, 2))
def smooth_total_variation(np, signal, weight):
    return np.sum(signal**2) + weight * np.sum(np.sqrt(np.diff(signal) ** 2 + 0.01)) + np.sum(np.diff(signal, n=2) ** 2)


@program(normal(8), uniform(-0.5, 0.5, 2), uniform(-0.9, -0.1, 2))
def biquad_filter(np, signal, forward, backward):
    out = []
    for t in range(8):
        value = signal[t]
        for k in (1, 2):
            if t >= k:
                value = value + forward[k - 1] * signal[t - k] + 0.5 * backward[k - 1] * out[t - k]
        out.append(value)
    return np.sum(np.array(out) ** 2)


@program(normal(3, 6))
def autocorrelation_of_channels(np, channels):
    centred = channels - np.mean(channels, axis=1, keepdims=True)
    lags = [np.sum(centred[:, lag:] * centred[:, : 6 - lag], axis=1) for lag in range(1, 4)]
    return np.stack(lags) / np.sum(centred**2, axis=1)


@program(normal(6), uniform(0.5, 2, 6), autograd=0)
def cumulative_products_of_gains(np, signal, gains):
    return np.sum(signal * np.cumprod(gains)) + np.prod(gains)


@program(uniform(-2, 2, 10), number(0.5, 1), autograd=0)
def clipped_and_reflected_signal(np, signal, bound):
    limited = np.clip(signal, -0.9, 0.9) + np.tanh(signal / bound)
    return np.sum(np.pad(limited, 2, mode="reflect") ** 2)


@program(normal(4, 6))
def pooled_image(np, image):
    blocks = np.reshape(image, (2, 2, 3, 2))
    return np.sum(np.max(blocks, axis=(1, 3)) ** 2) + np.sum(np.mean(blocks, axis=(1, 3)) ** 3)


@program(normal(5), uniform(0.1, 3.9, 6))
def linear_resampling(np, values, positions):
    index = np.floor(positions)
    share = positions - index
    nodes = np.arange(5.0)
    left = np.maximum(0.0, 1 - np.abs(index[:, None] - nodes)) @ values
    right = np.maximum(0.0, 1 - np.abs(index[:, None] + 1 - nodes)) @ values
    return (1 - share) * left + share * right


@program(normal(6), normal(6), autograd=0)
def flipped_and_interleaved(np, even, odd):
    woven = np.reshape(np.stack([even, odd[::-1]], axis=1), -1)
    return np.sum(woven[1:] * woven[:-1] ** 2) + np.sum(np.flip(woven)[::3] * np.tile(even, 2)[::3])
