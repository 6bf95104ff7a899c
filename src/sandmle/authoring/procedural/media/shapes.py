"""Graphs and point clouds: JSON and CSV files."""

import json

import numpy as np

from sandmle.authoring.procedural.families.base import FloatArray, Web

_KINDS = "ABCHMPQRS"


def tied(webs: list[Web], rng: np.random.Generator) -> Web:
    """Returns one graph of several webs, tied together in a chain, with its nodes in random order."""
    kinds = "".join(web.kinds for web in webs)
    weights = [weight for web in webs for weight in web.weights]
    edges: list[tuple[int, int]] = []
    start = 0
    for web in webs:
        edges += [(first + start, second + start) for first, second in web.edges]
        if start:
            edges.append((start - 1, start))
        start += len(web.kinds)
    place = rng.permutation(len(kinds))
    order = np.argsort(place)
    moved = [tuple(sorted((int(place[first]), int(place[second])))) for first, second in edges]
    mixed = [moved[at] for at in rng.permutation(len(moved))]
    return Web("".join(kinds[at] for at in order), tuple(weights[at] for at in order), tuple(mixed))


def graph_bytes(graph: Web) -> bytes:
    """Returns a graph as a JSON file: nodes by number with their kind and weight, and edges."""
    nodes = [[kind, weight] for kind, weight in zip(graph.kinds, graph.weights, strict=True)]
    return (json.dumps({"nodes": nodes, "edges": graph.edges}, separators=(",", ":")) + "\n").encode()


def node_counts(graphs: list[Web]) -> FloatArray:
    """Returns the number of nodes of each kind, their mean weights, and the number of edges # [n_graphs, n_numbers]."""
    rows = []
    for graph in graphs:
        weights = np.array(graph.weights)
        of_kind = [np.array([kind == own for own in graph.kinds]) for kind in _KINDS]
        means = [float(weights[own].mean()) if own.any() else 1.0 for own in of_kind]
        rows.append([*(float(own.sum()) for own in of_kind), *means, float(len(graph.edges))])
    return np.array(rows)


def cloud_bytes(clouds: FloatArray, sensors: np.ndarray) -> bytes:
    """Returns the points of a row's pieces # [n_pieces, n_points, 4] as a CSV file.

    Args:
        clouds: x, y, z and strength.
        sensors: The sensor that saw each point # [n_points]
    """
    several = len(clouds) > 1
    lines = [("piece," if several else "") + "sensor,x,y,z,strength"]
    for number, points in enumerate(clouds.tolist(), start=1):
        head = f"{number}," if several else ""
        lines += [
            f"{head}{sensor},{x:.2f},{y:.2f},{z:.2f},{strength:.2f}"
            for sensor, (x, y, z, strength) in zip(sensors.tolist(), points, strict=True)
        ]
    return ("\n".join(lines) + "\n").encode()


def cloud_means(clouds: FloatArray, sensors: np.ndarray) -> FloatArray:
    """Returns the mean of place and strength of each sensor's points # [n, n_numbers]."""
    return np.hstack([clouds[:, sensors == sensor].mean(axis=1) for sensor in np.unique(sensors)])
