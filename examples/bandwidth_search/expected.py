# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of this example as SciPy's cdist and scikit-learn's KernelRidge have them."""
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.kernel_ridge import KernelRidge

table = np.loadtxt(Path(__file__).parent.parent / "digits" / "digits.csv", delimiter=",")
images, digits = table[:, :64], table[:, 64].astype(int)
n, held_out = len(images) // 2, len(images) // 4
x = images[:n]
best = (-1, 0)
for p in (1, 1.25, 1.5, 2):
    distances = cdist(images, x, "minkowski", p=p)
    for width in (16, 32, 64, 128, 256):
        kernel = np.exp(-distances / width)
        model = KernelRidge(alpha=1e-3, kernel="precomputed").fit(kernel[:n], np.eye(10)[digits[:n]])
        right = model.predict(kernel[n:]).argmax(axis=1) == digits[n:]
        chosen_by, tested = int(right[:held_out].sum()), int(right[held_out:].sum())
        print(f"--expect {p}/{width}={chosen_by}", end=" ")
        if chosen_by > best[0]:
            best = (chosen_by, tested)
print(f"--expect test={best[1]}")
