# Programs: all of them in one folder, build/…/bin, that runs wherever it is copied to.

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
# One list of places for shared libraries, in the build tree and installed: next to the program first.
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
if(BUILD_SHARED_LIBS)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endif()

# Clang's OpenMP runtime, under the name that the loader looks for (its soname, libomp.so.5).
if(Kokkos_ENABLE_OPENMP AND CMAKE_READELF)
  foreach(name IN LISTS OpenMP_CXX_LIB_NAMES)
    set(library ${OpenMP_${name}_LIBRARY})
    if(name MATCHES "omp$" AND EXISTS "${library}")
      execute_process(COMMAND ${CMAKE_READELF} -d ${library} OUTPUT_VARIABLE dynamic ERROR_QUIET)
      if(dynamic MATCHES "soname: *\\[([^]\n]+)\\]")
        set(soname ${CMAKE_MATCH_1})
        file(REAL_PATH ${library} library)
        file(MAKE_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
        file(COPY_FILE ${library} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${soname} ONLY_IF_DIFFERENT)
      endif()
    endif()
  endforeach()
endif()

# rigel_add_executable(<name> <source>… [DATA <file or folder>…]): a program on Rigel::rigel in bin/; DATA is copied next to it.
function(rigel_add_executable name)
  cmake_parse_arguments(arg "" "" "DATA" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE Rigel::rigel)
  if(Kokkos_ENABLE_CUDA)
    target_compile_options(${name} PRIVATE ${RIGEL_CUDA_IMAGE_OPTIONS})
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
  # Programs run side by side: threads that wait leave the processor to others. No profile in the user's configuration counts.
  set(environment OMP_PROC_BIND=false OMP_WAIT_POLICY=passive UBSAN_OPTIONS=print_stacktrace=1 RIGEL_PROFILE=off)
  if(Kokkos_ENABLE_THREADS)
    list(APPEND environment KOKKOS_NUM_THREADS=2)  # Kokkos::Threads has one by default, which would not test much
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77 ENVIRONMENT "${environment}")
endfunction()
