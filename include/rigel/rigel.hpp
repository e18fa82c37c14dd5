// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All of Rigel: semirings, also from text, contract(), closure(), transitive_closure(), cdist(), kernel_matrix(), its and other gradients, reduce(),
// nearest() and what belongs to them, the linear layer, solves, the registry.
#pragma once

#include <rigel/activation.hpp>
#include <rigel/arguments.hpp>
#include <rigel/closure.hpp>
#include <rigel/config.hpp>
#include <rigel/contract.hpp>
#include <rigel/contract_backward.hpp>
#include <rigel/dissimilarities.hpp>
#include <rigel/distance.hpp>
#include <rigel/epilogue.hpp>
#include <rigel/error.hpp>
#include <rigel/gradient.hpp>
#include <rigel/kernel_matrix.hpp>
#include <rigel/kernel_matrix_gradient.hpp>
#include <rigel/kernel_matvec.hpp>
#include <rigel/kernel_solve.hpp>
#include <rigel/kmeans.hpp>
#include <rigel/linalg.hpp>
#include <rigel/linear.hpp>
#include <rigel/matvec_gradient.hpp>
#include <rigel/neighbors.hpp>
#include <rigel/outside_kernels.hpp>
#include <rigel/pinned.hpp>
#include <rigel/presize.hpp>
#include <rigel/ranges.hpp>
#include <rigel/reduce.hpp>
#include <rigel/registry.hpp>
#include <rigel/runtime.hpp>
#include <rigel/runtime_cache.hpp>
#include <rigel/runtime_compile.hpp>
#include <rigel/semiring.hpp>
#include <rigel/semiring_info.hpp>
#include <rigel/semirings.hpp>
#include <rigel/sinkhorn.hpp>
#include <rigel/transitive_closure.hpp>
