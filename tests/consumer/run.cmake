# Installs Rigel from the build tree into an empty prefix, then configures, builds and runs the consumer project against it. First
# it compiles the consumer as a user without CMake does, with one include folder for Rigel and one for Kokkos.

function(step what)
  message(STATUS "${what}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "consumer: ${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${work}/prefix ${work}/project)
step("install Rigel into an empty prefix" ${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
set(options -std=c++20 -fsyntax-only -I ${work}/prefix/include -I ${kokkos}/../../../include)
if(openmp)
  list(APPEND options -fopenmp)
endif()
if(cuda)
  list(APPEND options -x cuda --cuda-host-only --cuda-path=${toolkit}/.. -Wno-unknown-cuda-version
    -include rigel/detail/kokkos_cuda13.hpp)
endif()
step("compile the consumer without CMake" ${compiler} ${options} ${source}/main.cpp)
step("configure the consumer" ${CMAKE_COMMAND} -S ${source} -B ${work}/project -G ${generator}
  -DCMAKE_MAKE_PROGRAM=${make} -DCMAKE_CXX_COMPILER=${compiler} -DCMAKE_BUILD_TYPE=${build_type} -DCMAKE_CXX_FLAGS=${flags}
  -DCMAKE_PREFIX_PATH=${work}/prefix -DKokkos_DIR=${kokkos} -DCUDAToolkit_ROOT=${toolkit}/..)
step("build it" ${CMAKE_COMMAND} --build ${work}/project)
if(cuda AND NOT EXISTS /dev/nvidia0)
  message(STATUS "not run: it is built for CUDA, and no GPU is here")
else()
  step("run it" ${work}/project/consumer)
  message(STATUS "${output}")
endif()
