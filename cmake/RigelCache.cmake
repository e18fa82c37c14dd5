# Objects come from ccache where there is one: cmake/cached says what it looks them up by. A launcher that the user set stays, unless it
# is ccache itself, which would miss changes of device code.
option(RIGEL_CCACHE "Compile through ccache, where there is one" ${PROJECT_IS_TOP_LEVEL})
if(RIGEL_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_HOST_UNIX)
  find_program(RIGEL_CCACHE_PROGRAM ccache)
  if(RIGEL_CCACHE_PROGRAM AND "${CMAKE_CXX_COMPILER_LAUNCHER}" MATCHES "^([^;]*/)?(ccache)?$")
    set(CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/cached ${RIGEL_CCACHE_PROGRAM})
  endif()
endif()
