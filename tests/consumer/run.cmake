# Installs Rigel from the build tree into an empty prefix, then configures, builds and runs the consumer project against it, and
# compiles its source by Clang alone, as pkg-config says if there is one. Projects that cannot work are told why. Last come the C
# interface, from a project in C and from a C compiler alone, and a project that adds Rigel's sources.

# attempt(<what> <command>…): leaves `status` and `output`.
function(attempt what)
  message(STATUS "${what}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " words "${output}")
  set(status "${status}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
  set(words "${words}" PARENT_SCOPE)
endfunction()

function(step what)
  attempt("${what}" ${ARGN})
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "consumer: ${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
  set(words "${words}" PARENT_SCOPE)
endfunction()

# says(<words>): the last command must have printed these, on whatever lines.
function(says expected)
  string(FIND "${words}" "${expected}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "consumer: expected '${expected}' in:\n${output}")
  endif()
endfunction()

# refused(<what> <words> <command>…)
function(refused what expected)
  attempt("${what}" ${ARGN})
  if(status EQUAL 0)
    message(FATAL_ERROR "consumer: ${what} succeeded:\n${output}")
  endif()
  says("${expected}")
endfunction()

set(runs TRUE)
if(cuda AND NOT EXISTS /dev/nvidia0)
  set(runs FALSE)
endif()
function(run program)
  if(runs)
    step("run it" ${program} ${ARGN})
    message(STATUS "${output}")
  else()
    message(STATUS "not run: it is built for CUDA, and no GPU is here")
  endif()
endfunction()

file(REMOVE_RECURSE ${work}/prefix ${work}/project ${work}/refused ${work}/project_c ${work}/fetched)
step("install Rigel into an empty prefix" ${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
file(GLOB_RECURSE pc ${work}/prefix/rigel.pc)
cmake_path(GET pc PARENT_PATH folder)
cmake_path(GET folder PARENT_PATH libraries)
set(ENV{PKG_CONFIG_PATH} ${folder})
find_program(PKG_CONFIG pkg-config)

set(project ${CMAKE_COMMAND} -S ${source} -G ${generator} -DCMAKE_MAKE_PROGRAM=${make} -DCMAKE_PREFIX_PATH=${work}/prefix)
set(dependencies -DKokkos_DIR=${kokkos} -DCUDAToolkit_ROOT=${toolkit}/..)
step("configure the consumer" ${project} ${dependencies} -B ${work}/project -DCMAKE_CXX_COMPILER=${compiler}
  -DCMAKE_BUILD_TYPE=${build_type} -DCMAKE_CXX_FLAGS=${flags})
step("build it" ${CMAKE_COMMAND} --build ${work}/project)
run(${work}/project/consumer)

separate_arguments(flags UNIX_COMMAND "${flags}")
if(PKG_CONFIG)
  step("ask pkg-config for flags" ${PKG_CONFIG} --cflags rigel)
  separate_arguments(of_files UNIX_COMMAND "${output}")
  step("ask pkg-config for libraries" ${PKG_CONFIG} --libs rigel)
  separate_arguments(of_libraries UNIX_COMMAND "${output}")
  step("compile the consumer without CMake" ${compiler} ${flags} ${of_files} ${source}/main.cpp ${of_libraries} -o ${work}/consumer_alone)
  run(${work}/consumer_alone)
endif()

# A compiler that cannot compile Rigel's headers, and a project without a build type.
find_program(GXX g++)
if(GXX)
  refused("configure the consumer for g++" "Rigel's headers need Clang 22 or newer" ${project} ${dependencies} -B ${work}/refused
    -DCMAKE_CXX_COMPILER=${GXX})
  refused("compile a header by g++" "Rigel's headers need Clang 22 or newer" ${GXX} -std=c++20 -fsyntax-only -x c++ -I ${work}/prefix/include
    -include rigel/numeric.hpp /dev/null)
  refused("add Rigel's sources to a project for g++" "Rigel's headers need Clang 22 or newer" ${CMAKE_COMMAND} -S ${source}/fetched
    -B ${work}/refused_sources -G ${generator} -DCMAKE_MAKE_PROGRAM=${make} -DRIGEL_SOURCE=${example}/.. ${dependencies}
    -DCMAKE_CXX_COMPILER=${GXX})
endif()
step("configure the consumer without a build type" ${project} ${dependencies} -B ${work}/project -DCMAKE_BUILD_TYPE=)
says("CMAKE_BUILD_TYPE is not set")

# Rigel's sources in a project that takes warnings for errors. Its object needs no library.
step("add Rigel's sources to a project" ${CMAKE_COMMAND} -S ${source}/fetched -B ${work}/fetched -G ${generator}
  -DCMAKE_MAKE_PROGRAM=${make} -DRIGEL_SOURCE=${example}/.. ${dependencies} -DCMAKE_CXX_COMPILER=${compiler})
says("CMAKE_BUILD_TYPE is not set")
step("compile a file of it" ${CMAKE_COMMAND} --build ${work}/fetched --target strict)

if(with_c)
  set(project_c ${CMAKE_COMMAND} -S ${source}/c -G ${generator} -DCMAKE_MAKE_PROGRAM=${make} -DCMAKE_PREFIX_PATH=${work}/prefix
    -DEXAMPLE=${example}/c/main.c -DCMAKE_C_COMPILER=${c_compiler})
  list(JOIN flags " " c_flags)
  refused("configure a project in C, as one in C++" "this project has no language CXX" ${project_c} -B ${work}/refused_c -DCOMPONENTS=)
  step("configure a project in C" ${project_c} -B ${work}/project_c -DCMAKE_C_FLAGS=${c_flags})
  step("build it" ${CMAKE_COMMAND} --build ${work}/project_c)
  run(${work}/project_c/digits ${example}/digits/digits.csv euclidean 1776)

  set(link -I${work}/prefix/include -L${libraries} -lrigel_c)
  if(PKG_CONFIG)
    step("ask pkg-config" ${PKG_CONFIG} --cflags --libs rigel_c)
    separate_arguments(link UNIX_COMMAND "${output}")
  endif()
  step("compile the example in C" ${c_compiler} -std=c99 ${flags} ${example}/c/main.c ${link} -lm -o ${work}/digits_c)
  set(ENV{LD_LIBRARY_PATH} ${libraries})
  run(${work}/digits_c ${example}/digits/digits.csv euclidean 1776)
endif()
