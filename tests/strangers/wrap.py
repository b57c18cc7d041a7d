"""Program -> the program with its losses as functions under `@zoomgrad.compiled`, by moving lines only.

    ypred = [model(x) for x in xs]                          def loss_0(model, xs, ys):
    loss = sum((y - p)**2 for y, p in zip(ys, ypred))   ->      ypred = …; loss = …; return loss, (ypred,)
    loss.backward()                                         loss, ypred = loss_0(model, xs, ys)
                                                            loss.backward()

The lines that move are those of the same block that compute the loss. Values that the program creates stay where they
are and become arguments. The name `_zoomgrad_call` is a function that `child.py` offers.
"""

import ast
import builtins
from collections import Counter

COMPILED = "compiled:"
"""Before an engine's name: the program's losses run under the decorator with that engine."""
CALL = "_zoomgrad_call"


def wrapped(source):
    """The changed source and the number of lines that moved or are new; 0 if no loss was found."""
    tree = ast.parse(source)
    wrapping = _Wrapping(tree)
    _blocks(tree, wrapping.block)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n", wrapping.lines


def _blocks(node, change):
    for name in ("body", "orelse", "finalbody", "handlers"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            for inner in block:
                _blocks(inner, change)
            if name != "handlers":
                setattr(node, name, change(block))


class _Wrapping:
    def __init__(self, tree):
        self.assigned = _stored(tree)
        self.loads = _loads([tree])
        self.sites = self.lines = 0

    def block(self, block):
        for at, statement in enumerate(block):
            loss = _loss_of(statement)
            if loss:
                changed = self.site(block, at, loss)
                if changed is not None:
                    return changed
        return block

    def site(self, block, end, loss):
        """The block with the statements that compute the loss in a function, or None if there are none to move."""
        last = max((at for at in range(end) if loss in _stored(block[at])), default=None)
        if last is None or not _movable(block[last]):
            return None
        needed, moved = _needed(block[last]), [last]
        for at in range(last - 1, -1, -1):
            if _changed(block[at]) & needed and _movable(block[at]):
                needed = needed - _stored(block[at]) | _needed(block[at])
                moved.insert(0, at)
        computed = set().union(*(_stored(block[at]) for at in moved))
        moved += [at for at in range(moved[0], end) if _labels(block[at]) & computed and at not in moved]
        body = [block[at] for at in sorted(moved)]
        stay = [block[at] for at in range(end) if at not in moved]
        # What uses the results comes after the call.
        late = [each for each in stay[moved[0] :] if (_loaded(each) | _stored(each)) & computed]
        stay = [each for each in stay if each not in late]
        inside = _loads(body)
        others = sorted(name for name in computed - {loss} if self.loads[name] > inside[name])
        arguments = sorted(needed & self.assigned - (computed - needed) - set(dir(builtins)))
        name = f"_loss_{self.sites}"
        tuple_of = {key: "".join(f"{each}, " for each in names) for key, names in (("in", arguments), ("out", others))}
        text = f"def {name}({tuple_of['in']}):\n    return {loss}, ({tuple_of['out']})\n"
        text += f"{loss}, {tuple_of['out']} = {CALL}({self.sites}, {name}, ({tuple_of['in']}))"
        function, call = ast.parse(text).body
        function.body[:0] = body
        self.sites += 1
        self.lines += sum(len(ast.unparse(each).splitlines()) for each in body) + 3
        return [*stay, function, call, *late, *block[end:]]


def _labels(statement):
    """The names in `name.label = …`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {
        each.value.id
        for target in targets
        for each in ast.walk(target)
        if isinstance(each, ast.Attribute) and "label" in each.attr and isinstance(each.value, ast.Name)
    }


def _loss_of(statement):
    """The name in `name.backward()`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr == "backward" and isinstance(function.value, ast.Name):
        return function.value.id
    return ""


def _movable(statement):
    """Whether a statement may move: it assigns names, and creates no Values or models."""
    if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For)):
        return False
    for node in ast.walk(statement):
        called = getattr(node, "func", None)
        if (getattr(called, "id", "") or getattr(called, "attr", ""))[:1].isupper():
            constant = node.args and all(isinstance(each, ast.Constant) for each in node.args)
            if not constant or (isinstance(statement, (ast.Assign, ast.AnnAssign)) and node is statement.value):
                return False
        if isinstance(node, (ast.Yield, ast.Await, ast.Return, ast.Break)):
            return False
    return True


def _names(node, context):
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, context)}


def _stored(node):
    return _names(node, ast.Store) - _bound_inside(node)


def _bound_inside(node):
    """Names of comprehensions."""
    found = [part for part in ast.walk(node) if isinstance(part, ast.comprehension)]
    return set().union(*(_names(part.target, ast.Store) for part in found))


def _loaded(node):
    return _names(node, ast.Load) - _bound_inside(node)


def _loads(statements):
    """Name -> how often these statements read it."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    return Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


def _needed(statement):
    """Names that a statement reads before it assigns them."""
    updated = {part.target.id for part in ast.walk(statement) if _updates(part)}
    own = _stored(statement) if isinstance(statement, ast.For) else set()
    return _loaded(statement) - own | updated


def _updates(node):
    return isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)


def _changed(node):
    """Names that a statement assigns or appends to."""
    appended = {
        part.func.value.id
        for part in ast.walk(node)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in ("append", "extend")
        and isinstance(part.func.value, ast.Name)
    }
    return _stored(node) | appended
