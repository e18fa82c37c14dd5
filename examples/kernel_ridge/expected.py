# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of this example as scikit-learn's KernelRidge has them."""
from pathlib import Path

import numpy as np
from sklearn.kernel_ridge import KernelRidge

table = np.loadtxt(Path(__file__).parent.parent / "digits" / "digits.csv", delimiter=",")
images, digits = table[:, :64], table[:, 64].astype(int)
n = 3 * len(images) // 4
for width in (6.25, 12.5, 25, 50, 100, 200, 400):
    model = KernelRidge(alpha=1e-3, kernel="laplacian", gamma=1 / width).fit(images[:n], np.eye(10)[digits[:n]])
    print(f"width={width}: {(model.predict(images[n:]).argmax(axis=1) == digits[n:]).sum()}")
