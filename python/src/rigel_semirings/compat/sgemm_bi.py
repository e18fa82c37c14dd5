# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sgemm-bi's `Linear` and `deterministic_linear` for torch, with forward, dX and dW whose bits are part of the contract.

Weights are (in_features, out_features), biases float32. The scalar tier has one chain of fused multiply-adds for each output, ascending along
in_features: the same bits on every host and every GPU, float16 and bfloat16 rounded once. `tensor_cores` asks for the tensor tier, of float16
and bfloat16 on a GPU; elsewhere it changes nothing. Tensors may be on the host. dW and the bias's gradient are sums in float32. `Engine`, which
takes addresses, is not here: `rigel_semirings.linear_forward` and its like take tensors.
"""

import torch

from .._errors import InvalidArgument
from .._linear import linear_backward_input, linear_backward_weight, linear_forward

__all__ = ["Linear", "deterministic_linear"]

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
