"""Functions on which optimisers are tried."""

from tests.oracles.program import normal, number, program, uniform


@program(normal(6), single=1e-3)
def rosenbrock(np, x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@program(normal(5))
def ackley(np, x):
    return -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2))) - np.exp(np.mean(np.cos(2 * np.pi * x))) + 20 + np.e


@program(number(-3, 3), number(-3, 3))
def himmelblau(np, x, y):
    return (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2


@program(uniform(-2, 2, 5), number(5, 10))
def rastrigin(np, x, depth):
    return depth * len(x) + np.sum(x**2 - depth * np.cos(2 * np.pi * x))


@program(uniform(-5, 5, 5))
def griewank(np, x):
    return 1 + np.sum(x**2) / 4000 - np.prod(np.cos(x / np.sqrt(np.arange(1.0, 6.0))))


@program(uniform(1, 5, 5))
def schwefel(np, x):
    return 418.98 * 5 - np.sum(x * np.sin(np.sqrt(np.abs(x))))


@program(uniform(-2, 2, 5), single=1e-3)
def levy(np, x):
    w = 1 + (x - 1) / 4
    middle = np.sum((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2))
    return np.sin(np.pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2)


@program(number(-2, 2), number(-2, 2))
def beale(np, x, y):
    return (1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2


@program(number(-1, 1), number(-1, 1), single=1e-3)
def goldstein_price(np, x, y):
    first = 1 + (x + y + 1) ** 2 * (19 - 14 * x + 3 * x**2 - 14 * y + 6 * x * y + 3 * y**2)
    second = 30 + (2 * x - 3 * y) ** 2 * (18 - 32 * x + 12 * x**2 + 48 * y - 36 * x * y + 27 * y**2)
    return np.log(first * second)


@program(number(-1, 1), number(-1, 1))
def six_hump_camel(np, x, y):
    return (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2


@program(uniform(0.5, 2.5, 4))
def michalewicz(np, x):
    return -np.sum(np.sin(x) * np.sin(np.arange(1.0, 5.0) * x**2 / np.pi) ** 10)


@program(uniform(-1, 1, 4), single=1e-3)
def powell_singular(np, x):
    a, b, c, d = x
    return (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4


@program(uniform(-2, 2, 5), autograd=0)
def styblinski_tang(np, x):
    return 0.5 * np.sum(np.polyval(np.array([1.0, 0.0, -16.0, 5.0, 0.0]), x))


@program(number(-2, 2), number(-2, 2))
def easom_with_a_floor(np, x, y):
    return -np.cos(x) * np.cos(y) * np.exp(-((x - np.pi) ** 2) - (y - np.pi) ** 2) + np.abs(x * y) ** 2.5


@program(uniform(0.1, 0.9, 3))
def hartmann(np, x):
    A = np.array([[3.0, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
    P = np.array([[0.36, 0.11, 0.26], [0.46, 0.43, 0.74], [0.10, 0.87, 0.55], [0.03, 0.57, 0.88]])
    return -np.dot(np.array([1.0, 1.2, 3.0, 3.2]), np.exp(-np.sum(A * (x - P) ** 2, axis=1)))
