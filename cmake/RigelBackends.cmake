# How a backend's CMakeLists.txt adds itself to the library.

include(${CMAKE_CURRENT_LIST_DIR}/semirings.cmake)

# rigel_backend(<name> OPERATIONS <problem type>…): this build holds the backend <name>; its register_<name>() is called for the
# registry of each of these operations, and its headers, which a user's functor instantiates, are installed.
function(rigel_backend name)
  cmake_parse_arguments(arg "" "" "OPERATIONS" ${ARGN})
  set_property(GLOBAL APPEND PROPERTY RIGEL_BACKENDS ${name})
  foreach(operation IN LISTS arg_OPERATIONS)
    set_property(GLOBAL APPEND PROPERTY RIGEL_BACKENDS_${operation} ${name})
  endforeach()
endfunction()

# rigel_instantiate(<out> <template> <stem> [LEVEL <level>] [TOGETHER <n>]): configures <template> once per semiring of the
# zoo, as <stem>_<semiring>.cpp in the build tree; <out> receives the list of the files. TOGETHER: <n> of them are one file,
# <stem>_<number>.cpp, if Kokkos's headers take longer than the instances.
function(rigel_instantiate out template stem)
  cmake_parse_arguments(arg "" "LEVEL;TOGETHER" "" ${ARGN})
  cmake_path(ABSOLUTE_PATH template)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${template})
  file(READ ${template} instance)
  set(RIGEL_LEVEL "${arg_LEVEL}")
  set(files)
  set(text)
  set(count 0)
  list(LENGTH RIGEL_SEMIRINGS all)
  foreach(RIGEL_SEMIRING IN LISTS RIGEL_SEMIRINGS)
    string(CONFIGURE "${instance}" one @ONLY)
    string(APPEND text "${one}")
    math(EXPR count "${count} + 1")
    set(name ${RIGEL_SEMIRING})
    if(arg_TOGETHER)
      math(EXPR rest "${count} % ${arg_TOGETHER}")
      if(rest AND count LESS all)
        continue()
      endif()
      math(EXPR name "(${count} - 1) / ${arg_TOGETHER}")
    endif()
    set(file ${CMAKE_CURRENT_BINARY_DIR}/instantiate/${stem}_${name}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND files ${file})
    set(text)
  endforeach()
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# rigel_kokkos_free(<target>): an OBJECT library whose files include no Kokkos header and see none of Kokkos's
# flags: plain C++ (or CUDA with flags of its own) even where Kokkos asks for everything to be CUDA.
function(rigel_kokkos_free target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
  target_sources(rigel PRIVATE $<TARGET_OBJECTS:${target}>)
endfunction()

# rigel_cuda_options(<target> <arch>…): the files of <target> are CUDA C++ for each architecture ("80", "90a"), with the
# PTX of the lowest one for newer GPUs, which take none of an "a". ptxas's report of every file is kept next to its object, as
# <object>.ptxas, where scripts/check_spills.py reads it.
function(rigel_cuda_options target)
  set(architectures ${ARGN})
  list(SORT architectures COMPARE NATURAL)
  set(portable ${architectures})
  list(FILTER portable EXCLUDE REGEX "a$")
  cmake_path(GET CUDAToolkit_BIN_DIR PARENT_PATH toolkit)
  target_compile_options(${target} PRIVATE -x cuda --cuda-path=${toolkit} -Wno-unknown-cuda-version)
  foreach(architecture IN LISTS architectures)
    target_compile_options(${target} PRIVATE --offload-arch=sm_${architecture})
  endforeach()
  set(ptx --no-cuda-include-ptx=all)
  if(portable)
    list(GET portable 0 lowest)
    set(ptx --cuda-include-ptx=sm_${lowest})
  endif()
  target_compile_options(${target} PRIVATE ${ptx} ${RIGEL_CUDA_COMPRESS} "SHELL:-Xcuda-ptxas -v")
  set(launcher ${PROJECT_SOURCE_DIR}/cmake/keep_ptxas_report ${CMAKE_CXX_COMPILER_LAUNCHER})
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher}")
  set_property(GLOBAL APPEND PROPERTY RIGEL_CUDA_TARGETS ${target})
endfunction()
