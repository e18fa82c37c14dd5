# librigel_c.so: the C interface (rigel.h), with librigel and Kokkos inside; and how programs in C and Fortran are built on it.

if(NOT RIGEL_BUILD_C)
  return()
endif()

# Programs in C are compiled by GCC: what a user of the C interface has. Those with a sanitizer need Clang's, as the library does.
if(NOT CMAKE_C_COMPILER)
  if(RIGEL_SANITIZE)
    string(REPLACE "clang++" "clang" CMAKE_C_COMPILER ${CMAKE_CXX_COMPILER})
  else()
    find_program(RIGEL_GCC gcc)
    if(RIGEL_GCC)
      set(CMAKE_C_COMPILER ${RIGEL_GCC})
    endif()
  endif()
endif()
enable_language(C)

file(GLOB c_sources CONFIGURE_DEPENDS src/c/*.cpp)
# The kernels of each semiring of src/c/dissimilarities.hpp in a file of its own, since GPUs' take long to compile.
function(rigel_compile_dissimilarities what)
  foreach(name IN LISTS ARGN)
    set(file ${PROJECT_BINARY_DIR}/src/c/dissimilarities_${name}.cpp)
    configure_file(src/c/dissimilarities.cpp.in ${file} @ONLY)
    target_sources(rigel_c PRIVATE ${file})
  endforeach()
endfunction()

set(exports ${PROJECT_SOURCE_DIR}/src/c/exports.map)
add_library(rigel_c SHARED ${c_sources})
add_library(Rigel::rigel_c ALIAS rigel_c)
set_target_properties(rigel_c PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin LINK_DEPENDS ${exports})
target_include_directories(rigel_c INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_include_directories(rigel_c PRIVATE ${PROJECT_SOURCE_DIR}/src/c)
rigel_compile_dissimilarities(NUMBERS variance_squares weighted_lp lp_with_epsilon great_circle canberra braycurtis
  relative_entropy divergence_from_mean)
rigel_compile_dissimilarities(MEASURE jaccard dice rogerstanimoto russellrao sokalsneath yule)
target_link_libraries(rigel_c PRIVATE Rigel::rigel)
target_link_options(rigel_c PRIVATE LINKER:--version-script=${exports} ${RIGEL_LLD_OPTIONS})
if(Kokkos_ENABLE_CUDA)
  target_compile_options(rigel_c PRIVATE ${RIGEL_CUDA_IMAGE_OPTIONS})
endif()
if(RIGEL_PORTABLE_BINARIES)
  target_link_options(rigel_c PRIVATE -static-libstdc++ -static-libgcc -s)
endif()

# rigel_add_c_executable(<name> <source>…): a program in C or Fortran on librigel_c.so in bin/, without a flag of Kokkos's.
function(rigel_add_c_executable name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE Rigel::rigel_c m)
  set_target_properties(${name} PROPERTIES C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:-pedantic>
    $<$<COMPILE_LANGUAGE:Fortran>:-Wno-compare-reals> -Werror)
endfunction()
