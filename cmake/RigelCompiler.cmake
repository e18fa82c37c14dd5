# What compiles Rigel's headers: of this build, and of a project that finds or adds Rigel.

# rigel_check_compiler(<out>): why this project's compiler does not, in a sentence; nothing if it does.
function(rigel_check_compiler out)
  set(problem "")
  if(NOT CMAKE_CXX_COMPILER_LOADED)
    string(CONCAT problem "Rigel is a C++ library, and this project has no language CXX. Enable it, or find_package(Rigel COMPONENTS c), "
      "the C interface, which needs a C compiler alone.")
  elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 22)
    string(CONCAT problem "Rigel's headers need Clang 22 or newer; CMAKE_CXX_COMPILER is ${CMAKE_CXX_COMPILER} "
      "(${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}). Configure with -DCMAKE_CXX_COMPILER=clang++-22 in an empty build folder.")
  endif()
  set(${out} "${problem}" PARENT_SCOPE)
endfunction()

# rigel_check_build_type(): warns of a project without optimisation that nobody asked for.
function(rigel_check_build_type)
  get_property(is_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT CMAKE_BUILD_TYPE AND NOT is_multi_config)
    message(WARNING "CMAKE_BUILD_TYPE is not set, so this project is compiled without optimisation: a semiring of yours takes a hundred times "
      "as long and more. Configure with -DCMAKE_BUILD_TYPE=Release. -DCMAKE_CXX_FLAGS=-march=native gives it the vectors of this machine.")
  endif()
endfunction()
