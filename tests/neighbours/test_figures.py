"""Callbacks of matplotlib that call compiled gradients: sliders, buttons, animations, clicks; and what it draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.animation import FuncAnimation, PillowWriter  # noqa: E402
from matplotlib.backend_bases import MouseButton, MouseEvent  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.widgets import Button, Slider  # noqa: E402

X = np.linspace(-2.0, 2.0, 50)


def wave(x: Any, k: Any) -> Any:
    return np.sin(k * x) * np.exp(-(x**2))


def figure() -> Figure:
    made = Figure()
    FigureCanvasAgg(made)
    return made


def test_a_slider_draws_the_derivative() -> None:
    drawn = figure()
    top, bottom = drawn.subplots(2)
    slope = rg.vmap(rg.grad(wave), in_axes=(0, None))
    (line,) = top.plot(X, slope(X, 1.0))
    slider = Slider(bottom, "k", 0.5, 8.0, valinit=1.0)
    slider.on_changed(lambda k: line.set_ydata(slope(X, k)))
    for k in (2.0, 3.5, 7.25):
        slider.set_val(k)
        drawn.canvas.draw()
        np.testing.assert_allclose(line.get_ydata(), np.exp(-(X**2)) * (k * np.cos(k * X) - 2 * X * np.sin(k * X)))
    assert slope.cache_info().misses <= 2


def test_a_button_takes_a_step_that_reads_the_figure() -> None:
    drawn = figure()
    top, bottom = drawn.subplots(2)
    (dot,) = top.plot([1.0], [1.0], "o")
    step = rg.grad(lambda x: np.sum((x - 3.0) ** 2))

    def clicked(_: Any) -> None:
        x = np.asarray(dot.get_xdata())
        dot.set_xdata(x - 0.25 * step(x))

    button = Button(bottom, "step")
    button.on_clicked(clicked)
    drawn.canvas.draw()
    centre = bottom.transAxes.transform((0.5, 0.5))
    for name in ("button_press_event", "button_release_event") * 3:
        drawn.canvas.callbacks.process(name, MouseEvent(name, drawn.canvas, *centre, MouseButton.LEFT))
    np.testing.assert_allclose(dot.get_xdata(), [3.0 - 2.0 * 0.5**3])


def test_an_animation_follows_a_gradient(tmp_path: Any) -> None:
    drawn = figure()
    axes = drawn.subplots()
    (path,) = axes.plot([], [], "-")
    slope = rg.grad(lambda x: np.sum(x**2 * np.array([1.0, 4.0])))
    points = [np.array([2.0, 1.0])]

    def advance(_: int) -> Any:
        points.append(points[-1] - 0.1 * slope(points[-1]))
        path.set_data(*np.transpose(points))
        return (path,)

    animation = FuncAnimation(drawn, advance, frames=8, init_func=lambda: (path,), blit=True)
    animation.save(tmp_path / "descent.gif", PillowWriter(fps=10))
    assert (tmp_path / "descent.gif").stat().st_size > 0
    np.testing.assert_allclose(points[-1], [2.0 * 0.8 ** (len(points) - 1), 0.2 ** (len(points) - 1)])


def test_results_are_drawn_as_they_are() -> None:
    drawn = figure()
    axes = drawn.subplots()
    axes.plot(X, rg.vmap(rg.grad(wave), in_axes=(0, None))(X, 2.0))
    axes.errorbar([0.0], [rg.grad(wave)(0.0, 2.0)], yerr=[abs(rg.grad(wave)(0.5, 2.0))])
    axes.set_title(f"slope {rg.grad(wave)(0.0, 2.0):.3f}")
    axes.imshow(rg.hessian(lambda x: np.sum(np.outer(x, x) ** 2))(np.arange(3.0)))
    drawn.canvas.draw()
    assert axes.get_title() == "slope 2.000"


def test_a_secondary_axis_inverts_by_newtons_method() -> None:
    drawn = figure()
    axes = drawn.subplots()
    axes.set_xlim(0.1, 2.0)

    def there(x: Any) -> Any:
        return x + x**3

    slope = rg.vmap(rg.grad(there))

    def back(y: Any) -> Any:
        x = np.cbrt(np.asarray(y, float))
        for _ in range(30):
            x = x - (there(x) - y) / slope(np.ravel(x)).reshape(np.shape(x))
        return x

    second = axes.secondary_xaxis("top", functions=(there, back))
    drawn.canvas.draw()
    np.testing.assert_allclose(second.get_xlim(), there(np.array([0.1, 2.0])))
