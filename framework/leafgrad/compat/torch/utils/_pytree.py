"""``torch.utils._pytree``: nested containers, flat and back; containers of other classes can be registered."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = [
    "SUPPORTED_NODES",
    "Context",
    "GetAttrKey",
    "LeafSpec",
    "MappingKey",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "_dict_flatten",
    "_dict_unflatten",
    "_get_node_type",
    "_list_flatten",
    "_list_unflatten",
    "_register_pytree_node",
    "_tuple_flatten",
    "_tuple_unflatten",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
]

PyTree = Context = Any
Predicate = Callable[[Any], bool] | None


class Node(NamedTuple):
    """How a container is taken apart, into children and what else makes it up, and built again."""

    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]


def _of_dict(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


SUPPORTED_NODES: dict[Any, Node] = {
    list: Node(lambda x: (x, None), lambda children, _: list(children)),
    tuple: Node(lambda x: (list(x), None), lambda children, _: tuple(children)),
    dict: Node(_of_dict, lambda children, keys: dict(zip(keys, children, strict=True))),
    OrderedDict: Node(_of_dict, lambda children, keys: OrderedDict(zip(keys, children, strict=True))),
    defaultdict: Node(
        lambda d: (list(d.values()), [d.default_factory, list(d)]),
        lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True)),
    ),
    deque: Node(lambda x: (list(x), x.maxlen), lambda children, maxlen: deque(children, maxlen)),
    namedtuple: Node(lambda x: (list(x), type(x)), lambda children, cls: cls(*children)),
}
_dict_flatten, _dict_unflatten = SUPPORTED_NODES[dict]
_list_flatten, _list_unflatten = SUPPORTED_NODES[list]
_tuple_flatten, _tuple_unflatten = SUPPORTED_NODES[tuple]


@dataclass(frozen=True)
class SequenceKey:
    """The place of a child in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class MappingKey:
    """The key of a child in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """The name of a child that is an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(eq=True)
class TreeSpec:
    """The nesting of a tree: the container's class, what else makes it up, and the nesting of its children."""

    type: Any
    context: Any
    children_specs: list[TreeSpec]

    @property
    def num_leaves(self) -> int:
        """How many leaves a tree of this nesting has."""
        return sum(spec.num_leaves for spec in self.children_specs)

    @property
    def num_children(self) -> int:
        """How many children the container has."""
        return len(self.children_specs)

    def is_leaf(self) -> bool:
        """Whether the tree is a leaf."""
        return False

    def __repr__(self) -> str:
        children = ",\n".join(map(repr, self.children_specs)).replace("\n", "\n  ")
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"


class LeafSpec(TreeSpec):
    """The nesting of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])

    @property
    def num_leaves(self) -> int:
        """1."""
        return 1

    def is_leaf(self) -> bool:
        """True."""
        return True

    def __repr__(self) -> str:
        return "*"


def register_pytree_node(
    cls: type[Any],
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    **_: Any,
) -> None:
    """Make objects of ``cls`` containers.

    Args:
        cls: the class itself; not classes derived from it.
        flatten_fn: of an object, the list of its children and whatever else is needed to build it.
        unflatten_fn: of children and what ``flatten_fn`` returned beside them, the object.

    Raises:
        ValueError: it is one already.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = Node(flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


def _kind(tree: Any) -> Any:
    """What the container is registered as; None for a leaf."""
    if type(tree) in SUPPORTED_NODES:
        return type(tree)
    return namedtuple if isinstance(tree, tuple) and hasattr(tree, "_fields") else None


def _get_node_type(tree: Any) -> Any:
    """What a container is registered as; the class itself for a leaf."""
    return _kind(tree) or type(tree)


def tree_flatten(tree: Any, is_leaf: Predicate = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree from left to right, and its nesting."""
    leaves: list[Any] = []
    return leaves, _walk(tree, is_leaf, leaves)


def _walk(tree: Any, is_leaf: Predicate, leaves: list[Any]) -> TreeSpec:
    kind = None if is_leaf is not None and is_leaf(tree) else _kind(tree)
    if kind is None:
        leaves.append(tree)
        return LeafSpec()
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_walk(child, is_leaf, leaves) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of that nesting with these leaves.

    Raises:
        ValueError: it has another number of leaves.
    """
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten: leaves: expected {treespec.num_leaves}, as the treespec has, got {len(given)}"
        )
    return _build(treespec, iter(given))


def _build(spec: TreeSpec, leaves: Any) -> Any:
    if spec.is_leaf():
        return next(leaves)
    children = [_build(child, leaves) for child in spec.children_specs]
    return SUPPORTED_NODES[spec.type].unflatten_fn(children, spec.context)


def tree_leaves(tree: Any, is_leaf: Predicate = None) -> list[Any]:
    """The leaves of a tree, from left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: Predicate = None) -> Iterable[Any]:
    """The leaves of a tree, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Predicate = None) -> TreeSpec:
    """The nesting of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Predicate = None) -> Any:
    """The tree of ``func`` of each leaf, and of what stands in its place in ``rests``.

    Raises:
        ValueError: one of ``rests`` is nested otherwise.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(_up_to(spec, rest) for rest in rests)]
    return tree_unflatten([func(*row) for row in zip(*columns, strict=True)], spec)


def _up_to(spec: TreeSpec, tree: Any) -> list[Any]:
    """The parts of a tree that stand where a nesting has leaves."""
    if spec.is_leaf():
        return [tree]
    kind = _kind(tree)
    if kind is not spec.type:
        raise ValueError(f"tree_map: expected a {spec.type.__name__}, got {tree!r:.60}")
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != spec.num_children:
        raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}.")
    if isinstance(tree, dict):
        keys = spec.context[1] if spec.type is defaultdict else spec.context
        if set(keys) != set(tree):
            raise ValueError(f"tree_map: expected the keys {list(keys)}, got {list(tree)}")
        children = [tree[key] for key in keys]
    elif context != spec.context:
        raise ValueError(f"tree_map: expected a {spec.type.__name__} with {spec.context!r}, got one with {context!r}")
    return [part for each, child in zip(spec.children_specs, children, strict=True) for part in _up_to(each, child)]


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Predicate = None) -> Any:
    """``tree``, after ``func`` was called with each leaf."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _only(kinds: Any, func: Callable[[Any], Any]) -> Callable[[Any], Any]:
    wanted = kinds if callable(kinds) and not isinstance(kinds, type) else lambda x: isinstance(x, kinds)
    return lambda x: func(x) if wanted(x) else x


def tree_map_only(kinds: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Predicate = None) -> Any:
    """``tree_map`` of the leaves of some classes, or of which a function is true; the others stay."""
    return tree_map(_only(kinds, func), tree, is_leaf=is_leaf)


def tree_map_only_(kinds: Any, func: Any, tree: Any, is_leaf: Predicate = None) -> Any:
    """``tree``, after ``func`` was called with the leaves of some classes."""
    return tree_map_(_only(kinds, func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Predicate = None) -> bool:
    """Whether all leaves fulfil ``pred``."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Predicate = None) -> bool:
    """Whether any leaf fulfils ``pred``."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kinds: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Predicate = None) -> bool:
    """Whether all leaves of some classes fulfil ``pred``."""
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kinds))


def tree_any_only(kinds: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Predicate = None) -> bool:
    """Whether any leaf of some classes fulfils ``pred``."""
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kinds))


def tree_is_leaf(tree: Any, is_leaf: Predicate = None) -> bool:
    """Whether it is a leaf itself."""
    return (is_leaf is not None and is_leaf(tree)) or _kind(tree) is None


def keystr(kp: Iterable[Any]) -> str:
    """The keys of a path as Python writes them: ``[0]['a'].b``."""
    return "".join(map(str, kp))


def tree_leaves_with_path(tree: Any, is_leaf: Predicate = None) -> list[tuple[tuple[Any, ...], Any]]:
    """The leaves of a tree from left to right, each with the keys that lead to it.

    Raises:
        ValueError: a container of a registered class is in it, whose keys nobody knows.
    """
    if tree_is_leaf(tree, is_leaf):
        return [((), tree)]
    kind = _kind(tree)
    children = SUPPORTED_NODES[kind].flatten_fn(tree)[0]
    if isinstance(tree, dict):
        keys: list[Any] = [MappingKey(key) for key in tree]
    elif kind is namedtuple:
        keys = [GetAttrKey(name) for name in tree._fields]
    elif kind in (list, tuple, deque):
        keys = [SequenceKey(i) for i in range(len(children))]
    else:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}.")
    found = zip(keys, children, strict=True)
    return [((key, *path), leaf) for key, child in found for path, leaf in tree_leaves_with_path(child, is_leaf)]


def tree_flatten_with_path(tree: Any, is_leaf: Predicate = None) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """``tree_leaves_with_path``, and the nesting of the tree."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Predicate = None) -> Any:
    """``tree_map`` of a function that is told the keys that lead to a leaf first."""
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [*zip(*leaves, strict=True)] if leaves else [(), ()]
    columns += [tuple(_up_to(spec, rest)) for rest in rests]
    return tree_unflatten([func(*row) for row in zip(*columns, strict=True)], spec)
