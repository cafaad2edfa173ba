"""Angles, areas, rotations, distances and projections."""

from tests.oracles.program import normal, number, program, uniform


@program(normal(5, 2))
def area_of_a_polygon(np, corners):
    x, y = corners[:, 0], corners[:, 1]
    return 0.5 * np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)


@program(normal(5, 3))
def length_of_a_polyline(np, points):
    return np.sum(np.sqrt(np.sum(np.diff(points, axis=0) ** 2, axis=1)))


@program(uniform(0.2, 1.2, 2), uniform(0.2, 1.2, 2))
def great_circle_distance(np, here, there):
    dlat, dlon = here - there
    h = np.sin(dlat / 2) ** 2 + np.cos(here[0]) * np.cos(there[0]) * np.sin(dlon / 2) ** 2
    return 2 * np.arcsin(np.sqrt(h))


@program(normal(4), normal(3))
def rotation_by_a_quaternion(np, q, v):
    q = q / np.sqrt(np.dot(q, q))
    axis, w = q[1:], q[0]
    return v + 2 * np.cross(axis, np.cross(axis, v) + w * v)


@program(uniform(0.2, 1, 3), normal(3))
def rotation_by_a_vector(np, turn, v):
    angle = np.sqrt(np.sum(turn**2))
    axis = turn / angle
    return v * np.cos(angle) + np.cross(axis, v) * np.sin(angle) + axis * np.dot(axis, v) * (1 - np.cos(angle))


@program(normal(3), normal(3), normal(3))
def dihedral_angle(np, a, b, c):
    n1, n2 = np.cross(a, b), np.cross(b, c)
    return np.arctan2(np.dot(np.cross(n1, n2), b) / np.sqrt(np.dot(b, b)), np.dot(n1, n2))


@program(normal(3), normal(3))
def angle_between_two_vectors(np, a, b):
    return np.arccos(np.dot(a, b) / np.sqrt(np.dot(a, a) * np.dot(b, b)))


@program(uniform(-1, 1, 4, 3), number(1, 2), uniform(-0.2, 0.2, 3))
def reprojection_error_of_a_camera(np, points, focal, shift):
    moved = points + shift + np.array([0.0, 0.0, 4.0])
    seen = focal * moved[:, :2] / moved[:, 2:]
    radius = np.sum(seen**2, axis=1, keepdims=True)
    return np.sum((seen * (1 + 0.1 * radius) - 0.2) ** 2)


@program(uniform(0.2, 1.2, 3), uniform(0.5, 1, 3))
def reach_of_a_robot_arm(np, joints, lengths):
    angles = np.cumsum(joints)
    tip = np.stack([np.sum(lengths * np.cos(angles)), np.sum(lengths * np.sin(angles))])
    return np.sum((tip - np.array([0.5, 0.5])) ** 2)


@program(normal(3, 2))
def circumradius_and_area_of_a_triangle(np, corners):
    sides = np.hypot(*(corners - corners[np.array([1, 2, 0])]).T)
    half = np.sum(sides) / 2
    area = np.sqrt(half * np.prod(half - sides))
    return np.prod(sides) / (4 * area)


@program(uniform(-0.5, 0.5, 2), uniform(-0.5, 0.5, 2))
def distance_in_the_hyperbolic_disc(np, a, b):
    ratio = np.sum((a - b) ** 2) / ((1 - np.sum(a**2)) * (1 - np.sum(b**2)))
    return np.arccosh(1 + 2 * ratio)


@program(normal(4, 2), uniform(0, 1, 5))
def cubic_bezier_curve(np, control, t):
    t = t[:, None]
    a, b, c, d = control
    return (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d


@program(number(0.5, 2), number(0.2, 1.2), number(0.2, 3), number(0.5, 1.5))
def spherical_to_cartesian(np, r, polar, azimuth, stretch):
    return np.array(
        [r * np.sin(polar) * np.cos(azimuth), stretch * r * np.sin(polar) * np.sin(azimuth), r * np.cos(polar)]
    )


@program(normal(3), normal(3), number(0.1, 0.3))
def smooth_union_of_two_spheres(np, a, b, blend):
    da, db = np.sqrt(np.sum((a - 0.3) ** 2)) - 0.5, np.sqrt(np.sum((b + 0.2) ** 2)) - 0.8
    return -blend * np.logaddexp(-da / blend, -db / blend)
