"""Files whose content was changed and whose digest is right all the same, as a hostile writer would make them."""

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
    """The header of a file, which may be changed, and its arrays."""

    def __init__(self, path):
        with open_container(path) as reader:
            self.header = reader.header
            self.places = {id(node): k for k, node in enumerate(filter(is_array, nodes_of(self.header)))}
            self.arrays = [reader.read_array(node) for node in nodes_of(self.header) if is_array(node)]

    def node(self, *names):
        """Return the part of the header that stands for an attribute of an attribute ..."""
        node = self.header
        for name in names:
            node = node["state"] if node.get("kind") == "object" else dict(node["items"])
            node = node[name]
        return node

    def array(self, *names):
        """Return an array, which may be changed."""
        return self.arrays[self.places[id(self.node(*names))]]

    def replace(self, array, *names):
        """Put another array in the place of one."""
        node = self.node(*names)
        node["dtype"], node["shape"] = array.dtype.str, list(array.shape)
        self.arrays[self.places[id(node)]] = array

    def write(self, path):
        write_container(path, self.header, self.arrays, "0")
