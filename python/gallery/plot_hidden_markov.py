# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
A hidden Markov model in two semirings
======================================

A casino throws a fair die, and now and then a loaded one. The forward and backward recursions are products over log-plus, so nothing
underflows; over max-plus the same products give the most probable sequence.
"""

import matplotlib.pyplot as plt
import numpy as np

import rigel_semirings as rs

random = np.random.default_rng(2)
change = np.log([[0.95, 0.05], [0.10, 0.90]])
throw = np.log([[1 / 6] * 6, [0.1] * 5 + [0.5]])
start = np.log([0.5, 0.5])

length = 300
states, throws = np.zeros(length, int), np.zeros(length, int)
for t in range(length):
    states[t] = random.choice(2, p=np.exp(start if t == 0 else change[states[t - 1]]))
    throws[t] = random.choice(6, p=np.exp(throw[states[t]]))


def forward(semiring):
    rows = [start + throw[:, throws[0]]]
    for t in range(1, length):
        rows.append(rs.contract(rows[-1][None], change, semiring)[0] + throw[:, throws[t]])
    return np.array(rows)


def backward(semiring):
    rows = [np.zeros(2)]
    for t in range(length - 1, 0, -1):
        rows.append(rs.contract(change, (throw[:, throws[t]] + rows[-1])[:, None], semiring)[:, 0])
    return np.array(rows[::-1])


alpha, beta = forward("log_plus"), backward("log_plus")
evidence = np.logaddexp(*alpha[-1])
loaded = np.exp(alpha + beta - evidence)[:, 1]

# %%
# At each time the two posteriors add to one. In max-plus, forward and backward meet in the most probable path at every time.
assert np.allclose(np.exp(alpha + beta - evidence).sum(1), 1)
best = forward("max_plus") + backward("max_plus")
assert np.allclose(best.max(1), best.max())
viterbi = best.argmax(1)

figure, axes = plt.subplots(figsize=(9, 3))
axes.fill_between(range(length), states, step="mid", alpha=0.2, label="loaded die in use")
axes.plot(loaded, label="probability, given all throws")
axes.step(range(length), 1.06 + 0.06 * viterbi, where="mid", color="tab:red", linewidth=1, label="most probable sequence")
axes.set(xlabel="throw", title=f"{np.mean(viterbi == states):.0%} of the throws are attributed rightly")
axes.legend(loc="center right", fontsize=8)
figure.tight_layout()
plt.show()
