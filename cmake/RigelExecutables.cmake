# Programs: all of them in one folder, build/…/bin, that runs wherever it is copied to.

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_BUILD_RPATH "$ORIGIN")
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
if(BUILD_SHARED_LIBS)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endif()

# Clang's OpenMP runtime, under the name that the loader looks for.
if(Kokkos_ENABLE_OPENMP AND OpenMP_libomp_LIBRARY AND CMAKE_READELF)
  execute_process(COMMAND ${CMAKE_READELF} -d ${OpenMP_libomp_LIBRARY} OUTPUT_VARIABLE dynamic ERROR_QUIET)
  if(dynamic MATCHES "SONAME[^\n]*\\[([^]\n]+)\\]")
    file(REAL_PATH ${OpenMP_libomp_LIBRARY} libomp)
    file(MAKE_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
    file(COPY_FILE ${libomp} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${CMAKE_MATCH_1} ONLY_IF_DIFFERENT)
  endif()
endif()

# rigel_add_executable(<name> <source>… [DATA <file or folder>…]): a program on Rigel::rigel in bin/; DATA is copied beside it.
function(rigel_add_executable name)
  cmake_parse_arguments(arg "" "" "DATA" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE Rigel::rigel)
  if(Kokkos_ENABLE_CUDA)
    target_compile_options(${name} PRIVATE --cuda-include-ptx=all)
  endif()
  if(RIGEL_PORTABLE_BINARIES)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -s)
  endif()
  foreach(data IN LISTS arg_DATA)
    cmake_path(ABSOLUTE_PATH data)
    cmake_path(GET data FILENAME file)
    if(IS_DIRECTORY ${data})
      add_custom_command(TARGET ${name} POST_BUILD
        COMMAND ${CMAKE_COMMAND} -E copy_directory ${data} $<TARGET_FILE_DIR:${name}>/${file} VERBATIM)
    else()
      add_custom_command(TARGET ${name} POST_BUILD
        COMMAND ${CMAKE_COMMAND} -E copy_if_different ${data} $<TARGET_FILE_DIR:${name}>/${file} VERBATIM)
    endif()
  endforeach()
endfunction()

# rigel_add_ctest(<name> COMMAND <word>… [TIMEOUT <seconds>]): how every program is registered with ctest. A program that
# returns 77 could run nothing here, and says why.
function(rigel_add_ctest name)
  cmake_parse_arguments(arg "" "TIMEOUT" "COMMAND" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "OMP_PROC_BIND=false;UBSAN_OPTIONS=print_stacktrace=1")
endfunction()
