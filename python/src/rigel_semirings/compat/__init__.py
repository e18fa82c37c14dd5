# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of kermac, mm-kermac and sgemm-bi by their names, arguments and layouts, computed by Rigel.

A program moves in by another import: ``from rigel_semirings.compat import kermac``, ``import rigel_semirings.compat.mm_kermac.hyper_semiring as
kermac``, ``from rigel_semirings.compat import sgemm_bi``. Arrays may be of NumPy, too, in float64, too, and of a single matrix or a batch.
"""
