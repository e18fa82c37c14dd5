# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sgemm-bi's `Linear`, `deterministic_linear` and `Engine` for torch, with forward, dX and dW whose bits are part of the contract.

Weights are (in_features, out_features), biases float32. The scalar tier has one chain of fused multiply-adds for each output, ascending along
in_features: the same bits on every host and every GPU, float16 and bfloat16 rounded once. `tensor_cores` asks for the tensor tier, of float16
and bfloat16 on a GPU; elsewhere it changes nothing. Tensors may be on the host. dW and the bias's gradient are sums in float32.
"""

import contextlib
import ctypes

import torch

from .._errors import InvalidArgument
from .._linear import linear_backward_input, linear_backward_weight, linear_forward

__all__ = ["Engine", "Linear", "deterministic_linear"]

_TYPES = (torch.float32, torch.bfloat16, torch.float16)


class _DeterministicLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, tensor_cores):
        rows = x.detach().reshape(-1, weight.shape[0])
        ctx.save_for_backward(rows, weight)
        ctx.shape, ctx.has_bias = x.shape, bias is not None
        ctx.tier = "tensor" if tensor_cores and x.is_cuda and x.dtype is not torch.float32 else "scalar"
        y = linear_forward(rows, weight.detach().t(), None if bias is None else bias.detach(), tier=ctx.tier)
        return y.reshape(*x.shape[:-1], weight.shape[1])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        rows, weight = ctx.saved_tensors
        dy = dy.reshape(-1, weight.shape[1])
        dx = dw = db = None
        if ctx.needs_input_grad[0]:
            dx = linear_backward_input(dy, weight.detach().t(), tier=ctx.tier).reshape(ctx.shape)
        wants_bias = ctx.has_bias and ctx.needs_input_grad[2]
        if ctx.needs_input_grad[1] or wants_bias:
            dw, db = linear_backward_weight(rows, dy, bias=wants_bias, tier=ctx.tier)
            dw = dw.t().to(weight.dtype)
        return dx, dw, db, None


def deterministic_linear(x, weight, bias=None, tensor_cores=False):
    """x·weight + bias, of x (…, K), weight (K, N) and bias (N,).

    Raises InvalidArgument (a ValueError) if shapes or types do not fit.
    """
    if x.dtype is not weight.dtype or x.dtype not in _TYPES:
        raise InvalidArgument(f"x holds {x.dtype} and weight {weight.dtype}, expected one type, float32, bfloat16 or float16")
    if weight.dim() != 2 or x.shape[-1] != weight.shape[0]:
        raise InvalidArgument(f"x has the shape {tuple(x.shape)} and weight {tuple(weight.shape)}, expected (…, K) and (K, N)")
    if bias is not None and (bias.dtype is not torch.float32 or bias.shape != weight.shape[1:]):
        raise InvalidArgument(f"bias is {bias.dtype} of the shape {tuple(bias.shape)}, expected float32 of the shape ({weight.shape[1]},)")
    return _DeterministicLinear.apply(x, weight, bias, tensor_cores)


class Linear(torch.nn.Module):
    """torch.nn.Linear by `deterministic_linear`, with a weight (in_features, out_features) and a bias in float32."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=torch.float32, tensor_cores=False):
        super().__init__()
        self._set(torch.empty(in_features, out_features, device=device, dtype=dtype),
                  torch.empty(out_features, device=device) if bias else None, tensor_cores)
        self.reset_parameters()

    def _set(self, weight, bias, tensor_cores):
        self.in_features, self.out_features = weight.shape
        self.tensor_cores = tensor_cores
        self.weight = torch.nn.Parameter(weight)
        self.bias = None if bias is None else torch.nn.Parameter(bias)

    def reset_parameters(self):
        """Numbers as torch.nn.Linear has them."""
        torch.nn.init.kaiming_uniform_(self.weight.t(), a=5**0.5)
        if self.bias is not None:
            bound = self.in_features**-0.5
            torch.nn.init.uniform_(self.bias, -bound, bound)

    @classmethod
    def from_torch(cls, linear, tensor_cores=False):
        """The same layer as a torch.nn.Linear."""
        layer = cls.__new__(cls)
        torch.nn.Module.__init__(layer)
        bias = None if linear.bias is None else linear.bias.detach().float().clone()
        layer._set(linear.weight.detach().t().contiguous(), bias, tensor_cores)
        return layer

    def forward(self, x):
        return deterministic_linear(x, self.weight, self.bias, self.tensor_cores)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, tensor_cores={self.tensor_cores}"


class _Memory:
    """Bytes of a GPU, as torch takes them."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


class Engine:
    """The three products of a linear layer on memory that addresses name: row-major matrices without gaps, weights (K, N).

    Dimensions are (M, K, N), types "float32", "bfloat16" or "float16" (sgemm-bi's short names, too). Work is on the stream whose handle is
    given, and calls return at once. Nothing checks what an address names: memory must be as large as the dimensions say.

    Parameters
    ----------
    device : int or "cpu"
        A CUDA device, or the host, where addresses are the host's and streams mean nothing.

    Raises
    ------
    InvalidArgument (a ValueError) if there is no such device; by its calls, for dimensions, types and addresses that cannot be.

    Examples
    --------
    >>> import torch
    >>> from rigel_semirings.compat import sgemm_bi
    >>> x, w, y = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]]), torch.empty(1, 1)
    >>> sgemm_bi.Engine("cpu").forward((y.data_ptr(), x.data_ptr(), w.data_ptr(), None), (1, 2, 1), "float32", 0)
    >>> y
    tensor([[11.]])
    """

    def __init__(self, device):
        count = torch.cuda.device_count() if device != "cpu" else 0
        if device != "cpu" and not (isinstance(device, int) and 0 <= device < count):
            raise InvalidArgument(f"device is {device!r}, expected 'cpu' or a CUDA device, of which torch has {count}")
        self._device = torch.device(device) if device == "cpu" else torch.device("cuda", device)

    def _matrix(self, name, address, shape, dtype):
        if not isinstance(address, int) or address <= 0 or address % dtype.itemsize:
            raise InvalidArgument(f"the address of {name} is {address!r}, expected one of {dtype}")
        size = dtype.itemsize * shape[0] * (shape[1] if len(shape) == 2 else 1)
        if size == 0:
            return torch.empty(shape, dtype=dtype, device=self._device)
        if self._device.type == "cpu":
            return torch.frombuffer((ctypes.c_uint8 * size).from_address(address), dtype=dtype).reshape(shape)
        return torch.as_tensor(_Memory(address, size), device=self._device).view(dtype).reshape(shape)

    def _stream(self, handle):
        if self._device.type == "cpu":
            return contextlib.nullcontext()
        return torch.cuda.stream(torch.cuda.ExternalStream(handle, self._device))

    def _tier(self, dtype, tensor_cores):
        return "tensor" if tensor_cores and self._device.type != "cpu" and dtype is not torch.float32 else "scalar"

    def _matrices(self, names, ptrs, dims, dtype, shapes):
        """Tensors on the addresses, and the type of elements. `shapes` gives those of matrices by (M, K, N); of "dw" and "bias", in float32."""
        if len(ptrs) != len(names):
            raise InvalidArgument(f"ptrs has {len(ptrs)} addresses, expected {len(names)}: {', '.join(names)}")
        if len(dims) != 3 or any(not isinstance(one, int) or one < 0 for one in dims):
            raise InvalidArgument(f"dims is {dims!r}, expected M, K and N, none below 0")
        of = _NAMES.get(dtype)
        if of is None:
            raise InvalidArgument(f"dtype is {dtype!r}, expected one of {', '.join(_NAMES)}")
        m, k, n = dims
        rows = {"m": m, "k": k, "n": n}
        return [None if address is None and name == "bias" else
                self._matrix(name, address, tuple(rows[one] for one in shape), torch.float32 if name in ("dw", "bias") else of)
                for name, address, shape in zip(names, ptrs, shapes)], of

    def forward(self, *arguments, tensor_cores=False):
        """out(m,n) = Σ_k a(m,k)·b(k,n) + bias(n), of (out, a, b, bias), dims, dtype, stream, tensor_cores; the bias in float32 or None."""
        ptrs, dims, dtype, stream, tensor_cores = _arguments(arguments, 4, tensor_cores)
        (out, a, b, bias), of = self._matrices(("out", "a", "b", "bias"), ptrs, dims, dtype, ("mn", "mk", "kn", "n"))
        with self._stream(stream):
            linear_forward(a, b.t(), bias, tier=self._tier(of, tensor_cores), out=out)

    def backward_dw(self, *arguments, tensor_cores=False):
        """dw(k,n) += Σ_m x(m,k)·dy(m,n), of (dw, dy, x), dims, dtype, stream, tensor_cores; dw is float32."""
        ptrs, dims, dtype, stream, tensor_cores = _arguments(arguments, 3, tensor_cores)
        (dw, dy, x), of = self._matrices(("dw", "dy", "x"), ptrs, dims, dtype, ("kn", "mn", "mk"))
        with self._stream(stream):
            linear_backward_weight(x, dy, dw.t(), bias=False, tier=self._tier(of, tensor_cores))

    def backward_dx(self, *arguments, tensor_cores=False):
        """dx(m,k) = Σ_n dy(m,n)·w(k,n), of (dx, dy, w), dims, dtype, stream, tensor_cores."""
        ptrs, dims, dtype, stream, tensor_cores = _arguments(arguments, 3, tensor_cores)
        (dx, dy, w), of = self._matrices(("dx", "dy", "w"), ptrs, dims, dtype, ("mk", "mn", "kn"))
        with self._stream(stream):
            linear_backward_input(dy, w.t(), tier=self._tier(of, tensor_cores), out=dx)

    def presize_upcast_scratch(self, a_elems, b_elems, c_elems):
        """Does nothing: these products need no memory of their own. For CUDA graphs see `rigel_semirings`' rule, one call before."""

    def synchronize(self):
        """Waits for all work of the device."""
        if self._device.type != "cpu":
            torch.cuda.synchronize(self._device)


_NAMES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "f32": torch.float32, "bf16": torch.bfloat16,
          "f16": torch.float16, "half": torch.float16}


def _arguments(arguments, addresses, tensor_cores):
    """(addresses, dimensions, dtype, stream, tensor_cores), of which addresses and dimensions may stand one by one, too."""
    if arguments and not isinstance(arguments[0], (tuple, list)):
        arguments = (arguments[:addresses], arguments[addresses:addresses + 3], *arguments[addresses + 3:])
    if len(arguments) not in (4, 5):
        raise InvalidArgument(f"there are {len(arguments)} arguments, expected addresses, dimensions, dtype, stream and maybe tensor_cores")
    return (*arguments[:4], arguments[4] if len(arguments) == 5 else tensor_cores)
