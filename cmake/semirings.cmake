# The zoo: each backend's instantiation template is configured once for each of these (and once for each x86-64
# level, where a backend has levels), so that every semiring is a translation unit of its own.
set(RIGEL_SEMIRINGS
  plus_times min_plus max_plus max_min min_max max_times min_times or_and xor_and log_plus l1 l2_squared lp linf
  hamming bit_hamming bit_jaccard)
