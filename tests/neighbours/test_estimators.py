"""An estimator of scikit-learn with a loss of its own: it passes scikit-learn's checks, and works in its tools."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import retrograd as rg

pytest.importorskip("sklearn")
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import HuberRegressor, LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data


class SmoothLoss(RegressorMixin, BaseEstimator):
    """Linear regression that grows linearly in large errors, and is quadratic in small ones."""

    def __init__(self, width: float = 1.0, penalty: float = 1e-4) -> None:
        self.width, self.penalty = width, penalty

    def loss(self, p: dict[str, Any], X: Any, y: Any) -> Any:
        error = (X @ p["coef"] + p["intercept"] - y) / self.width
        return np.mean(np.sqrt(1.0 + error**2) - 1.0) * self.width**2 + self.penalty * np.sum(p["coef"] ** 2)

    def fit(self, X: Any, y: Any) -> SmoothLoss:
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        start = {"coef": np.zeros(X.shape[1]), "intercept": np.mean(y)}
        found = rg.scipy.minimize(self.loss, start, X, np.asarray(y, float), tol=1e-10, method="BFGS").x
        self.coef_, self.intercept_ = found["coef"], float(found["intercept"])
        return self

    def predict(self, X: Any) -> Any:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return X @ self.coef_ + self.intercept_


CHECKS = [check for _, check in estimator_checks_generator(SmoothLoss())]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: getattr(check, "func", check).__name__)
def test_scikit_learns_checks(check: Any) -> None:
    check(SmoothLoss())


X, Y = load_diabetes(return_X_y=True)
X, Y = X[:150] * 20.0, Y[:150] / 50.0


def test_it_is_least_squares_where_errors_are_small() -> None:
    wide = SmoothLoss(width=1e3, penalty=0.0).fit(X, Y)
    plain = LinearRegression().fit(X, Y)
    np.testing.assert_allclose(wide.coef_, plain.coef_, atol=1e-4)
    assert wide.score(X, Y) == pytest.approx(plain.score(X, Y), abs=1e-6)


def test_outliers_hardly_move_it() -> None:
    spoiled = Y.copy()
    spoiled[::15] += 40.0
    ours, robust, plain = (e.fit(X, spoiled) for e in (SmoothLoss(0.3), HuberRegressor(), LinearRegression()))
    clean = LinearRegression().fit(X, Y).coef_
    off = [float(np.linalg.norm(e.coef_ - clean)) for e in (ours, robust, plain)]
    assert off[0] < 0.5 * off[2]
    assert off[0] < 2.0 * off[1]


def test_it_works_in_pipelines_and_searches() -> None:
    model = make_pipeline(StandardScaler(), SmoothLoss())
    assert np.mean(cross_val_score(model, X, Y, cv=3)) > 0.3
    search = GridSearchCV(SmoothLoss(), {"width": [0.1, 1.0], "penalty": [1e-4, 10.0]}, cv=3).fit(X, Y)
    assert search.best_params_["penalty"] == 1e-4
    assert clone(search.best_estimator_).get_params() == search.best_params_


def test_each_object_has_its_own_parameters() -> None:
    one = SmoothLoss(penalty=0.0)
    first = one.fit(X, Y).coef_
    one.penalty = 100.0
    assert np.linalg.norm(one.fit(X, Y).coef_) < 0.1 * np.linalg.norm(first)
    np.testing.assert_array_equal(SmoothLoss(penalty=0.0).fit(X, Y).coef_, first)


def test_scipy_and_the_estimator_agree() -> None:
    estimator = SmoothLoss().fit(X, Y)
    flat, unravel = rg.tree.ravel({"coef": np.zeros(X.shape[1]), "intercept": 0.0})
    both = rg.value_and_grad(lambda p: estimator.loss(unravel(p), X, Y))
    by_hand = unravel(scipy.optimize.minimize(both, flat, jac=True, tol=1e-10).x)
    np.testing.assert_allclose(estimator.coef_, by_hand["coef"], atol=1e-6)
