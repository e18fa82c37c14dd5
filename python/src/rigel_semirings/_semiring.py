# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Semirings and epilogues of the user's own, from text or from Python functions: Rigel compiles them in process.

A function becomes text by tracing: it is called once with symbols, which record what is done with them.
"""

import inspect
import keyword
import math
import numbers
import re
import types

from . import _core
from ._arrays import numpy, require_no_gradient, type_code
from ._errors import InvalidArgument, Unsupported
from ._options import number
from .epilogue import steps_of

# The texts of a semiring, and that of an epilogue; what each is over; and what some may read in addition: the summation index, a place in C.
_MEMBERS = {"multiply": ("a", "b"), "add": ("x", "y"), "identity": (), "step": ("x", "a", "b"), "result": ("x",), "body": ("x",)}
# What is over other values in the texts of a `Derivative`.
_OF_DERIVATIVES = {"multiply": ("d", "b", "a"), "accumulate": ("x", "c", "v")}
_PLACES = {"multiply": ("k",), "step": ("k",), "body": ("m", "n")}


# ---- powers in texts ---------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"//[^\n]*|\s+|\*\*|(?:fast|rigel)::\w+|(?:0[xX][\da-fA-F.]*(?:[pP][+-]?\d+)?|\d[\w.]*?[eE][+-]?\d+|[\d.][\w.]*)|\w+|.",
                    re.DOTALL)


def _blank(token):
    return token.isspace() or token.startswith("//")


def _skipped(tokens, at, step):
    while 0 <= at < len(tokens) and _blank(tokens[at]):
        at += step
    return at


def _before(tokens, at):
    """Where the operand that ends before `at` begins: a name, a number, parentheses, or a function's call."""
    at = _skipped(tokens, at - 1, -1)
    if at >= 0 and tokens[at] == ")":
        depth = 0
        while at >= 0:
            depth += (tokens[at] == ")") - (tokens[at] == "(")
            if depth == 0:
                break
            at -= 1
        name = _skipped(tokens, at - 1, -1)
        if at >= 0 and name >= 0 and re.fullmatch(r"(?:\w+::)?[A-Za-z_]\w*", tokens[name]) and tokens[name] != "return":
            at = name
        return at
    return at if at >= 0 and re.match(r"[\w.]", tokens[at]) else -1


def _after(tokens, at):
    """Where the operand that begins after `at` ends, signs included."""
    at = _skipped(tokens, at + 1, 1)
    while at < len(tokens) and tokens[at] in "+-~!":
        at = _skipped(tokens, at + 1, 1)
    if at < len(tokens) and re.match(r"[A-Za-z_]", tokens[at]):
        following = _skipped(tokens, at + 1, 1)
        if following == len(tokens) or tokens[following] != "(":
            return at + 1
        at = following
    if at < len(tokens) and tokens[at] == "(":
        depth = 0
        while at < len(tokens):
            depth += (tokens[at] == "(") - (tokens[at] == ")")
            at += 1
            if depth == 0:
                return at
        return -1
    return at + 1 if at < len(tokens) and re.match(r"[\d.]", tokens[at]) else -1


def _power(base, exponent):
    """The text of a power. rigel's power() is of bases that are not negative, and C's pow() takes some ten times as long."""
    try:
        whole = float(exponent.strip("() \t\n"))
    except ValueError:
        whole = math.nan
    if not whole.is_integer():
        return f"power({base}, {exponent})"
    whole = int(whole)
    factor = base if re.fullmatch(r"\w+", base) else f"({_bare(base)})"
    products = {1: base, 2: "({0} * {0})", 3: "({0} * {0} * {0})", 4: "(({0} * {0}) * ({0} * {0}))"}
    longest = 64  # powers of powers would multiply the text
    return products[whole].format(factor) if whole in products and len(base) <= longest else f"pow({base}, {whole})"


def without_powers(text, owner="Semiring"):
    """The text with a product or a function's call for each x**p, which binds as in Python: -a**2 is -(a**2), and a**b**c is a**(b**c)."""
    tokens = _TOKEN.findall(text)
    while "**" in tokens:
        # Operands first: from the right, the first one whose base has no power in it.
        for at in (i for i in reversed(range(len(tokens))) if tokens[i] == "**"):
            begin, end = _before(tokens, at), _after(tokens, at)
            if begin < 0 or end < 0:
                line = "".join(tokens[:at]).count("\n") + 1
                raise InvalidArgument(f"{owner}: line {line} of '{text}': '**' stands between two operands, expected x**p")
            if "**" not in tokens[begin:at]:
                break
        base, power = "".join(tokens[begin:at]).strip(), "".join(tokens[at + 1:end]).strip()
        tokens[begin:end] = _TOKEN.findall(_power(base, power))
    return "".join(tokens)


# ---- tracing -----------------------------------------------------------------------------------------------------------------------


class Symbol:
    """A value in a function that is traced: how it comes from others."""

    __slots__ = ("_inputs", "_is_bool", "_template")

    def __init__(self, template, inputs=(), is_bool=False):
        self._template, self._inputs, self._is_bool = template, inputs, is_bool

    def _refuse(self, what):
        raise Unsupported(f"Semiring: a traced function calls {what} of a value, which has no number yet; use functions of NumPy, such as "
                          "np.exp, np.minimum and np.where(condition, x, y)")

    def __bool__(self):
        self._refuse("bool() (in an if, and, or, not, min, max, or in a < b < c)")

    def __float__(self):
        self._refuse("float()")

    def __int__(self):
        self._refuse("int()")

    def __index__(self):
        self._refuse("int()")

    def __iter__(self):
        self._refuse("iter()")

    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if method != "__call__" or options:
            raise Unsupported(f"Semiring: np.{ufunc.__name__} has options in a traced function, expected a plain call")
        return _applied(ufunc.__name__, *inputs)

    def __array_function__(self, function, types, args, kwargs):
        if kwargs:
            raise Unsupported(f"Semiring: np.{function.__name__} has options in a traced function, expected a plain call")
        return _applied(function.__name__, *args)


def _lifted(value):
    """A value as a symbol: a number, or a symbol already."""
    if isinstance(value, Symbol):
        return value
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        require_no_gradient(value, "a number of a traced function")
        value = value.item()
    if isinstance(value, bool):
        return Symbol("true" if value else "false", (), True)
    if not isinstance(value, numbers.Real):
        raise Unsupported(f"Semiring: a traced function has {value!r} among its values, expected a number")
    value = int(value) if isinstance(value, numbers.Integral) else float(value)
    if math.isnan(value):
        raise InvalidArgument("Semiring: a traced function has NaN among its numbers, which texts have not")
    text = ("infinity" if value > 0 else "-infinity") if math.isinf(value) else repr(value)
    return Symbol(text if value >= 0 and text[0] != "-" else f"({text})")


def _number(value):
    value = _lifted(value)
    return Symbol("({0} ? 1 : 0)", (value,)) if value._is_bool else value


def _condition(value):
    value = _lifted(value)
    return value if value._is_bool else Symbol("({0} != 0)", (value,), True)


def _numeric(template, is_bool=False):
    return lambda *values: Symbol(template, tuple(map(_number, values)), is_bool)


def _logical(template):
    return lambda *values: Symbol(template, tuple(map(_condition, values)), True)


def _raised(x, exponent):
    x, p = _number(x), _number(exponent)
    if isinstance(exponent, Symbol) or not float(exponent).is_integer():
        return Symbol("power({0}, {1})", (x, p))
    whole = int(exponent)
    if whole not in (1, 2, 3, 4):
        return Symbol(f"pow({{0}}, {whole})", (x,))
    square = Symbol("({0} * {0})", (x,))
    return {1: x, 2: square, 3: Symbol("({0} * {1})", (square, x)), 4: Symbol("({0} * {0})", (square,))}[whole]


def _bitwise(of_numbers, of_conditions):
    def apply(*values):
        values = tuple(map(_lifted, values))
        if all(value._is_bool for value in values):
            return Symbol(of_conditions, values, True)
        return Symbol(of_numbers, tuple(map(_number, values)))

    return apply


def _where(condition, x, y):
    x, y = _lifted(x), _lifted(y)
    if not (x._is_bool and y._is_bool):
        x, y = _number(x), _number(y)
    return Symbol("({0} ? {1} : {2})", (_condition(condition), x, y), x._is_bool)


# What functions of NumPy are in texts.
_FUNCTIONS = {
    "add": _numeric("({0} + {1})"), "subtract": _numeric("({0} - {1})"), "multiply": _numeric("({0} * {1})"),
    "divide": _numeric("({0} / {1})"), "true_divide": _numeric("({0} / {1})"), "negative": _numeric("(-{0})"), "positive": _numeric("{0}"),
    "power": _raised, "float_power": _raised, "square": _numeric("({0} * {0})"),
    "reciprocal": _numeric("(1 / {0})"), "minimum": _numeric("min({0}, {1})"), "maximum": _numeric("max({0}, {1})"),
    "clip": _numeric("min(max({0}, {1}), {2})"), "copysign": _numeric("copysign({0}, {1})"),
    "less": _numeric("({0} < {1})", True), "less_equal": _numeric("({0} <= {1})", True), "greater": _numeric("({0} > {1})", True),
    "greater_equal": _numeric("({0} >= {1})", True), "equal": _numeric("({0} == {1})", True), "not_equal": _numeric("({0} != {1})", True),
    "logical_and": _logical("({0} && {1})"), "logical_or": _logical("({0} || {1})"), "logical_not": _logical("(!{0})"),
    "bitwise_and": _bitwise("({0} & {1})", "({0} && {1})"), "bitwise_or": _bitwise("({0} | {1})", "({0} || {1})"),
    "bitwise_xor": _bitwise("({0} ^ {1})", "({0} != {1})"), "invert": _bitwise("(~{0})", "(!{0})"),
    "left_shift": _numeric("({0} << {1})"), "right_shift": _numeric("({0} >> {1})"), "where": _where,
    "absolute": _numeric("abs({0})"), "fabs": _numeric("abs({0})"),
    **{name: _numeric(name + "({0})") for name in ("sqrt", "floor", "ceil", "trunc", "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos",
                                                   "tanh")},
    **{name: _numeric(name + "({0})", True) for name in ("isnan", "isinf", "isfinite")},
}


def _applied(name, *values):
    if name not in _FUNCTIONS:
        raise Unsupported(f"Semiring: a traced function calls np.{name}, expected one of {', '.join(sorted(_FUNCTIONS))}")
    return _FUNCTIONS[name](*values)


def _operator(name, is_reflected):
    if is_reflected:
        return lambda self, other: _applied(name, other, self)
    return lambda self, *other: _applied(name, self, *other)


for _method, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power", "and": "bitwise_and",
                       "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift"}.items():
    setattr(Symbol, f"__{_method}__", _operator(_name, False))
    setattr(Symbol, f"__r{_method}__", _operator(_name, True))
for _method, _name in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert", "lt": "less", "le": "less_equal",
                       "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}.items():
    setattr(Symbol, f"__{_method}__", _operator(_name, False))


def operands_first(root, operands_of):
    """The root and all that its operands are made of, each once, after its operands."""
    order, visited, stack = [], set(), [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
        elif node not in visited:
            visited.add(node)
            stack.append((node, True))
            stack.extend((one, False) for one in operands_of(node))
    return order


def text_of(root, names):
    """The text that computes a symbol. What is used more than once, and what would be nested deeply, has a variable."""
    order, uses = operands_first(root, lambda node: node._inputs), {}
    for node in order:
        for place, one in enumerate(node._inputs):
            uses[one] = uses.get(one, 0) + node._template.count(f"{{{place}}}")
    deepest, texts, depths, statements = 8, {}, {}, []  # 48 constructs may be inside each other, of which a pair of parentheses is three
    free = (name for name in (f"t{i}" for i in range(1, len(order) + len(names) + 2)) if name not in names)
    for node in order:
        text = node._template.format(*(texts[one] for one in node._inputs)) if node._inputs else node._template
        depth = 1 + max((depths[one] for one in node._inputs), default=-1)
        if node is not root and node._inputs and (uses[node] > 1 or depth > deepest):
            name = next(free)
            statements.append(f"auto {name} = {_bare(text)};")
            text, depth = name, 0
        texts[node], depths[node] = text, depth
    if not statements:
        return _bare(texts[root])
    return "\n".join([*statements, f"return {_bare(texts[root])};"])


def _bare(text):
    """Without parentheses round all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1] if i == len(text) - 1 else text
    return text


def _accumulated(value, fields):
    """The text's accumulator of what a function returns: a number, or one for each field."""
    if not fields:
        return _number(value)
    if isinstance(value, types.SimpleNamespace):
        value = vars(value)
    if isinstance(value, dict) and value.keys() == fields.keys():
        value = [value[name] for name in fields]
    if not isinstance(value, (tuple, list)) or len(value) != len(fields):
        raise InvalidArgument(f"Semiring: a traced function returns {value!r}, expected a number for each field: {', '.join(fields)}")
    template = ", ".join(f".{name} = {{{place}}}" for place, name in enumerate(fields))
    return Symbol("{{" + template + "}}", tuple(map(_number, value)))


def _traced(function, member, parameters, fields=(), owner="Semiring"):
    """The text of a function. Arguments after those of the member are places, without a default, and hyperparameters, whose defaults go into
    `parameters`. An accumulator of several fields has them as attributes."""
    of_derivative = owner == "Derivative"
    over = _OF_DERIVATIVES.get(member, _MEMBERS.get(member)) if of_derivative else _MEMBERS[member]
    if isinstance(function, numpy().ufunc):  # whose signature has options that are no hyperparameters
        if function.nin != len(over) or function.nout != 1 or fields:
            raise InvalidArgument(f"{owner}: {member} is np.{function.__name__}, expected a function of {', '.join(over) or 'nothing'}")
        return text_of(_number(function(*map(Symbol, over))), parameters)
    try:
        arguments = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise Unsupported(f"{owner}: {member} is {function!r}, whose arguments are not known, expected a function of Python") from None
    wanted = f"({', '.join([*over, '…'])})" if over else "()"
    positional = [one for one in arguments if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if len(positional) < len(over) or any(one.default is not one.empty for one in positional[:len(over)]):
        raise InvalidArgument(f"{owner}: {member} takes {inspect.signature(function)}, expected {wanted}")
    values = [types.SimpleNamespace(**{field: Symbol(f"{name}.{field}") for field in fields}) if fields and name in "xy" else Symbol(name)
              for name in over]
    named = {}
    for one in arguments[len(over):]:
        if (one.name in (() if of_derivative else _PLACES.get(member, ())) and one.default is one.empty
                and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)):
            named[one.name] = Symbol(one.name)
            continue
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY) or (one.default is one.empty and one.name not in parameters):
            raise InvalidArgument(f"{owner}: {member} takes '{one}' after {wanted}, expected a hyperparameter with a value")
        if one.default is not one.empty:
            parameters.setdefault(one.name, one.default)
        named[one.name] = Symbol(one.name)
    root = _accumulated(function(*values, **named), () if member in ("result", "body") else fields)
    return text_of(root, {*parameters, *named})


def _texts_of(given, parameters, fields=(), owner="Semiring"):
    """The texts of members, each a text or a function."""
    texts = {}
    for member, text in given.items():
        if callable(text):
            texts[member] = _traced(text, member, parameters, fields, owner)
        elif isinstance(text, str):
            texts[member] = without_powers(text, owner)
        else:
            raise Unsupported(f"{owner}: {member} is {text!r}, expected a str or a function")
    for one in parameters:
        if hasattr(Semiring, one) or hasattr(Epilogue, one) or keyword.iskeyword(one):
            raise InvalidArgument(f"{owner}: a hyperparameter is called {one!r}, which has another meaning")
    return texts


def _name_of(name, function):
    if name is None:
        name = getattr(function, "__name__", "text")
        if not re.fullmatch(r"[A-Za-z_]\w{0,63}", name, re.ASCII):
            name = "text"
    return name


def _kind(kind, what):
    """1 for float, 2 for int."""
    if kind not in (float, int):
        raise Unsupported(f"Semiring: {what} is {kind!r}, expected float or int")
    return 1 if kind is float else 2


class _WithParameters:
    """What semirings and epilogues have in common: texts, and hyperparameters as attributes."""

    __slots__ = ("_core", "_name", "_parameters", "_texts")

    @property
    def name(self):
        """The name in explanations and messages."""
        return self._name

    @property
    def parameters(self):
        """The hyperparameters and their values, a copy."""
        return dict(self._parameters)

    def __getattr__(self, name):
        if not name.startswith("_"):
            if name in self._texts:
                return self._texts[name]
            if name in self._parameters:
                return self._parameters[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name, value):
        if name not in self._parameters:
            raise AttributeError(f"{type(self).__name__.lower()} {self._name!r} has no hyperparameter {name!r}, expected "
                                 f"{', '.join(self._parameters) or 'none'}")
        self._parameters[name] = self._value(name, value)

    @staticmethod
    def _value(name, value):
        """A hyperparameter's value: a number, or an array that calls read."""
        if _is_array(value):
            require_no_gradient(value, name)
            return value
        value = number(value, name, "a number, or an array with __dlpack__")
        if isinstance(value, int) and abs(value) > 2**53 and int(float(value)) != value:
            raise Unsupported(f"{name} is {value}, expected a number that a double holds, or an array of one int64")
        return float(value)

    def _check(self, types=1):
        """Checks the texts for float32, or for int32 if they are none of float32. `types`: how many the extension asks for."""

        def check(dtype):
            self._core.check(*[type_code(dtype, "dtype")] * types)

        try:
            check("float32")
        except InvalidArgument:
            try:  # bits and shifts are of integers
                check("int32")
            except InvalidArgument:
                pass
            else:
                return
            raise

    def __dir__(self):
        return [*super().__dir__(), *self._texts, *self._parameters]

    def __repr__(self):
        shown = {member: repr(text) for member, text in self._texts.items() if text}
        shown |= self._shown() | {one: repr(value) for one, value in self._parameters.items()}
        return f"{type(self).__name__}({', '.join(f'{one}={text}' for one, text in shown.items())})"

    def _shown(self):
        return {}


# ---- the class ---------------------------------------------------------------------------------------------------------------------


class Semiring(_WithParameters):
    """A semiring of your own: C(…,m,n) = result( ⊕_k A(…,m,k) ⊗ B(…,k,n) ) with ⊗ and ⊕ from text, or from functions.

    Rigel compiles it in process when a call first needs it, and keeps what it has compiled on disk. docs/runtime.md has the language.

    Parameters
    ----------
    multiply : str or function
        a ⊗ b, over `a` and `b`: an expression, or statements that end with ``return``. ``x**n`` is a product or C's pow for a whole
        number n; for other exponents it is ``power(x, p)``, of x that are not negative.
    add : str or function
        x ⊕ y, over `x` and `y`, associative. Sums are formed in ascending order of k.
    identity : str or function
        The identity of ⊕, a constant; not needed if add is ``x + y``, ``min(x, y)`` or ``max(x, y)``.
    step : str or function
        x ⊕ (a ⊗ b) in one, over `x`, `a` and `b`, such as ``fma(a, b, x)``; by default add of multiply.
    result : str or function
        What the output receives of a sum `x`; by default `x`.
    name : str
        In `explain` and messages: letters, digits and '_'; by default that of the function.
    commutative : bool
        a ⊗ b = b ⊗ a, which lets kernels compute the transpose.
    fields : dict
        The fields of an accumulator of 2 to 4 numbers, each float or int: ``{"value": float, "index": int}``. Texts write it in braces,
        ``{a + b, k}``, and read ``x.value``; functions return a tuple or a dict. `identity` and `result` must be given.
    result_type : float or int
        What `result` is, if it is not as the elements are.
    **parameters : numbers or arrays
        Hyperparameters, at most 16, that all texts but identity may read. They are attributes: ``s.p = 3`` compiles nothing. An array, of any
        library, broadcasts to the batch, the leading dimensions of a call: one number of it for each matrix. It has the type of the sums, is on the
        operands' device, and is read when a kernel runs, so that a replayed graph sees its new values.

    A function is called once, with symbols in place of numbers: it may use operators, comparisons, functions of NumPy (`np.exp`,
    `np.minimum`, `np.where` and the like) and what else works on them, but no ``if`` on them. An argument `k` of
    ⊗ without a default is the summation index, an integer that ``/`` truncates unless the other number is none. Its arguments after `a` and `b` are
    hyperparameters, with their values as defaults. A comparison among numbers is 1 or 0.

    Texts are checked for float32, or for int32 if they are none of float32, and for other types of elements when they meet them: float16,
    bfloat16, float32, float64, int32, int64. Sums have the type of the elements, float32 of 16 bits.

    Raises
    ------
    InvalidArgument (a ValueError)
        With the line, the column and a caret under the place, if a text is none of the language.
    Unsupported (a TypeError)
        If a function does with symbols what texts cannot. A call raises it if librigel_runtime.so, which compiles texts, is missing.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> soft = rs.Semiring(multiply="sqrt((a - b)**2 + eps)", add="x + y", eps=9.0)
    >>> soft.multiply
    'sqrt(((a - b) * (a - b)) + eps)'
    >>> rs.Semiring(multiply=lambda a, b: np.minimum(a, b), add="max(x, y)").multiply
    'min(a, b)'
    >>> nearest = rs.Semiring(multiply="{a + b, k}", add="y.value < x.value ? y : x", identity="{infinity, -1}", result="x.index",
    ...                       fields={"value": float, "index": int}, result_type=int)
    >>> soft.eps = 16.0
    >>> soft
    Semiring(multiply='sqrt(((a - b) * (a - b)) + eps)', add='x + y', eps=16.0)
    >>> soft.eps = np.array([1.0, 4.0, 9.0])  # for each of three matrices
    """

    __slots__ = ("_commutative", "_fields", "_result_type")

    def __init__(self, multiply, add="x + y", *, identity="", step="", result="", name=None, commutative=False, fields=None, result_type=None,
                 **parameters):
        given = {"multiply": multiply, "add": add, "identity": identity, "step": step, "result": result}
        if fields is not None and not isinstance(fields, dict):
            raise Unsupported(f"Semiring: fields are {fields!r}, expected a dict of names and types, float or int")
        fields = dict(fields or {})
        kinds = tuple((field, _kind(kind, f"field {field!r}") == 2) for field, kind in fields.items())
        result_kind = 0 if result_type is None else _kind(result_type, "result_type")
        texts = _texts_of(given, parameters, fields)
        name = _name_of(name, multiply)
        set_ = object.__setattr__
        set_(self, "_texts", texts)
        set_(self, "_name", name)
        set_(self, "_commutative", bool(commutative))
        set_(self, "_fields", fields)
        set_(self, "_result_type", result_type)
        set_(self, "_parameters", {one: self._value(one, value) for one, value in parameters.items()})
        set_(self, "_core", _core.Text(name, tuple(texts.values()), _first_values(self._parameters), self._commutative, kinds, result_kind))
        self._check()

    @property
    def commutative(self):
        """Whether a ⊗ b = b ⊗ a."""
        return self._commutative

    @property
    def fields(self):
        """The accumulator's fields and their types, a copy; empty if it is a number."""
        return dict(self._fields)

    @property
    def result_type(self):
        """What `result` is, float or int; None: as the elements are."""
        return self._result_type

    def _shown(self):
        shown = {"fields": f"{{{', '.join(f'{one!r}: {kind.__name__}' for one, kind in self._fields.items())}}}"} if self._fields else {}
        return shown if self._result_type is None else shown | {"result_type": self._result_type.__name__}

    def __reduce__(self):
        return _restored, (self._texts, self._name, self._commutative, self._parameters, self._fields, self._result_type)

    def compile(self, dtype="float32", like=None):
        """Compiles it for a type of elements, and for the device of the array `like` or for the host, so that no call has to.

        Raises Unsupported (a TypeError) if librigel_runtime.so, which compiles texts, is missing.
        """
        self._core.compile(type_code(dtype, "dtype"), like)

    @staticmethod
    def statistics():
        """How texts became kernels since the program started: {"compiled": …, "from_disk": …, "from_memory": …}."""
        return dict(zip(("compiled", "from_disk", "from_memory"), _core.text_statistics()))


def _restored(texts, name, commutative, parameters, fields=None, result_type=None):
    return Semiring(**texts, name=name, commutative=commutative, fields=fields, result_type=result_type, **parameters)


class Epilogue(_WithParameters):
    """An epilogue of your own for `contract`: what the output receives of each result, from text or from a function.

    Rigel compiles it in process when a call first needs it: on GPUs into the kernels themselves, those of tensor cores for plus_times of float16,
    bfloat16 and float32. docs/runtime.md has the language.

    Parameters
    ----------
    body : str or function
        Over `x`, the result of a sum, and its row `m` and column `n` in the output, which a function takes as arguments without a default.
        As of `Semiring`, ``x**n`` is a power.
    name : str
        In messages: letters, digits and '_'; by default that of the function.
    **parameters : numbers or arrays
        Hyperparameters, at most 16. They are attributes: ``e.slope = 0.1`` compiles nothing. Those of a function have their values as defaults.
        Arrays are as of `Semiring`, of the wider type of `x` and the output, float32 of 16 bits.

    It goes with a `Semiring` and with "plus_times". `x` is float32 of float16 and bfloat16, and else has the type of the results without
    an epilogue, as the output has if it is neither given nor has a `dtype`.

    Raises
    ------
    InvalidArgument (a ValueError), Unsupported (a TypeError)
        As of `Semiring`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> leaky = rs.Epilogue("x > 0 ? x : slope * x", slope=0.01)
    >>> leaky.slope = 0.5
    >>> leaky
    Epilogue(body='x > 0 ? x : slope * x', slope=0.5)
    >>> rs.Epilogue(lambda x, n, w=2.0: np.where(x > n, x, w * x)).body
    '(x > n) ? x : (w * x)'
    """

    __slots__ = ()

    def __init__(self, body, *, name=None, **parameters):
        texts = _texts_of({"body": body}, parameters, owner="Epilogue")
        if re.search(r"\bbatch\b", texts["body"]):
            raise InvalidArgument("Epilogue: body reads 'batch', expected x, m, n and hyperparameters: a batch of several dimensions may run in parts")
        set_ = object.__setattr__
        set_(self, "_texts", texts)
        set_(self, "_name", _name_of(name, body))
        set_(self, "_parameters", {one: self._value(one, value) for one, value in parameters.items()})
        set_(self, "_core", _core.TextEpilogue(self._name, texts["body"], _first_values(self._parameters)))
        self._check(types=2)

    def __reduce__(self):
        return _restored_epilogue, (self._texts["body"], self._name, self._parameters)

    def compile(self, semiring=None, dtype="float32", like=None):
        """Compiles what calls with a `Semiring` need, or with plus_times, for a type of elements, and for the device of the array `like` or for
        the host, so that no call has to.

        Raises Unsupported (a TypeError) if librigel_runtime.so, which compiles texts, is missing.
        """
        if semiring is not None and not isinstance(semiring, Semiring):
            raise Unsupported(f"Epilogue.compile: semiring is {semiring!r}, expected a Semiring, or None for plus_times")
        self._core.compile(None if semiring is None else semiring._core, type_code(dtype, "dtype"), like)


def _restored_epilogue(body, name, parameters):
    return Epilogue(body, name=name, **parameters)


def _is_array(value):
    return hasattr(value, "__dlpack__")


def _first_values(parameters):
    """Those that are numbers, and 0 for arrays, which calls have."""
    return {name: 0.0 if _is_array(value) else value for name, value in parameters.items()}


def semiring(function=None, /, *, add="x + y", identity="", step="", result="", name=None, commutative=False, fields=None, result_type=None):
    """A `Semiring` from a function, as a decorator: the function is ⊗, and its arguments after `a` and `b` are hyperparameters, but for `k`.

    Parameters
    ----------
    function : function of a, b, if it takes it, k, the summation index, and hyperparameters with defaults
    add, identity, step, result, name, commutative, fields, result_type : as of `Semiring`

    Returns
    -------
    Semiring, or a decorator if there is no function.

    Raises
    ------
    As `Semiring`.

    Examples
    --------
    >>> import rigel_semirings as rs
    >>> @rs.semiring
    ... def l1(a, b):
    ...     return abs(a - b)
    >>> l1
    Semiring(multiply='abs((a - b))', add='x + y')
    >>> @rs.semiring(add="max(x, y)")
    ... def weighted(a, b, w=2.0):
    ...     return w * abs(a - b)
    >>> weighted.w
    2.0
    """
    options = {"identity": identity, "step": step, "result": result, "name": name, "commutative": commutative, "fields": fields,
               "result_type": result_type}
    if function is None:
        return lambda one: Semiring(one, add, **options)
    if not callable(function):
        raise Unsupported(f"semiring is called with {function!r}, expected a function; texts go to Semiring(multiply=…)")
    return Semiring(function, add, **options)


def epilogue_of_call(given):
    """What the extension takes of an epilogue: steps, or a text with its hyperparameters."""
    return (given._core, given._parameters) if isinstance(given, Epilogue) else steps_of(given)


def of_call(given, parameters):
    """What the extension takes of a call's semiring and hyperparameters."""
    if not isinstance(given, Semiring):
        return given, parameters
    own = given._parameters
    if parameters is not None and not isinstance(parameters, dict):
        return given._core, parameters
    return given._core, {**own, **parameters} if parameters else own
