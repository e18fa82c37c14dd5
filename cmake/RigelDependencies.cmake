# What Rigel builds on: Kokkos, and a BLAS, a LAPACK and cuSOLVER where there are.

# Kokkos's launch wrapper only stands in for compilers that cannot compile CUDA; Clang can.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT DEFINED Kokkos_LAUNCH_COMPILER)
  set(Kokkos_LAUNCH_COMPILER OFF)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT TARGET Kokkos::kokkos)
  find_package(Kokkos 4.7 QUIET)
  if(NOT Kokkos_FOUND)
    message(FATAL_ERROR
      "No Kokkos 4.7 or newer was found. Set Kokkos_ROOT to an installed one, or run scripts/setup, which builds one.")
  endif()
endif()

if(RIGEL_REQUIRE_CUDA AND NOT Kokkos_ENABLE_CUDA)
  message(FATAL_ERROR "The Kokkos in ${Kokkos_DIR} was built without CUDA. Set Kokkos_ROOT to one that has it, "
    "or run scripts/setup --cuda, which builds one.")
endif()

if(Kokkos_ENABLE_CUDA)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "Rigel's CUDA side is compiled by Clang; CMAKE_CXX_COMPILER is ${CMAKE_CXX_COMPILER}. "
      "Set it to clang++-22, with a Kokkos that was built by it.")
  endif()
  find_package(CUDAToolkit REQUIRED)
  if(NOT RIGEL_CUDA_ARCHITECTURES)
    set(RIGEL_CUDA_ARCHITECTURES ${Kokkos_CUDA_ARCHITECTURES})
  endif()
  # Programs carry their PTX for newer GPUs, and all device code compressed: a third of its size.
  set(RIGEL_CUDA_COMPRESS "SHELL:-Xcuda-fatbinary --compress-all")
  if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.9)
    list(APPEND RIGEL_CUDA_COMPRESS "SHELL:-Xcuda-fatbinary --compress-mode=size")
  endif()
  set(RIGEL_CUDA_IMAGE_OPTIONS --cuda-include-ptx=all ${RIGEL_CUDA_COMPRESS})
  # The CUDA runtime goes into the programs, which then need no more than a driver. A shared Kokkos, or a shared
  # Rigel, has to share one runtime with them instead.
  get_target_property(kokkos_type Kokkos::kokkoscore TYPE)
  if(kokkos_type STREQUAL "STATIC_LIBRARY" AND NOT BUILD_SHARED_LIBS AND TARGET Kokkos::CUDA AND TARGET CUDA::cudart_static)
    set_target_properties(Kokkos::CUDA PROPERTIES INTERFACE_LINK_LIBRARIES "CUDA::cuda_driver;CUDA::cudart_static")
  endif()
endif()

set(RIGEL_HAS_BLAS 0)
if(RIGEL_ENABLE_BLAS)
  foreach(vendor IN ITEMS OpenBLAS All)
    if(NOT BLAS_FOUND)
      if(NOT DEFINED CACHE{BLA_VENDOR})
        set(BLA_VENDOR ${vendor})
      endif()
      find_package(BLAS QUIET)
    endif()
  endforeach()
  if(BLAS_FOUND)
    set(RIGEL_HAS_BLAS 1)
    set(RIGEL_BLA_VENDOR ${BLA_VENDOR})
  endif()
endif()

set(RIGEL_HAS_LAPACK 0)
if(RIGEL_ENABLE_LAPACK AND RIGEL_HAS_BLAS)
  find_package(LAPACK QUIET)
  if(LAPACK_FOUND)
    set(RIGEL_HAS_LAPACK 1)
  else()
    message(STATUS "host.lapack is left out: no LAPACK was found (Debian: libopenblas-dev)")
  endif()
endif()
