# Included by Kokkos's own project() call, through -DCMAKE_PROJECT_Kokkos_INCLUDE=<this file>, when scripts/setup
# builds Kokkos 4.7.00 for CUDA: its files, and everything that includes them, see kokkos_cuda13.hpp first. Its own kernels carry their
# PTX, without which no program of this Kokkos starts on a newer GPU.
install(FILES ${CMAKE_CURRENT_LIST_DIR}/kokkos_cuda13.hpp DESTINATION include)
add_compile_options("SHELL:-include ${CMAKE_CURRENT_LIST_DIR}/kokkos_cuda13.hpp" -Wno-unknown-cuda-version --cuda-include-ptx=all)
cmake_language(DEFER CALL target_compile_options kokkoscore INTERFACE
  "$<INSTALL_INTERFACE:SHELL:-include $<INSTALL_PREFIX>/include/kokkos_cuda13.hpp>"
  "$<INSTALL_INTERFACE:-Wno-unknown-cuda-version>")
