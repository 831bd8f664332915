"""Forge model files: change header and arrays, then write a valid digest, as an attacker would."""

from __future__ import annotations

from isokern.container import open_container, write_container


def is_array(node):
    return isinstance(node, dict) and node.get("kind") in ("array", "scalar")


def nodes_of(node):
    """Yield all lists and dicts of a header in the order in which they are decoded."""
    yield node
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list):
            yield from nodes_of(child)


class Forgery:
    """Header and arrays of a file, both of which may be changed."""

    def __init__(self, path):
        with open_container(path) as reader:
            self.header = reader.header
            self.places = {id(node): k for k, node in enumerate(filter(is_array, nodes_of(self.header)))}
            self.arrays = [reader.read_array(node) for node in nodes_of(self.header) if is_array(node)]

    def node(self, *names):
        """Return the header entry of a nested attribute, given the names on the way to it."""
        node = self.header
        for name in names:
            node = node["state"] if node.get("kind") == "object" else dict(node["items"])
            node = node[name]
        return node

    def array(self, *names):
        """Return an array, which may be changed."""
        return self.arrays[self.places[id(self.node(*names))]]

    def replace(self, array, *names):
        """Replace an array and its description."""
        node = self.node(*names)
        node["dtype"], node["shape"] = array.dtype.str, list(array.shape)
        self.arrays[self.places[id(node)]] = array

    def write(self, path):
        write_container(path, self.header, self.arrays, "0")
