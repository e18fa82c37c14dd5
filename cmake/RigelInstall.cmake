# cmake --install: headers, the library, and a package config for find_package(Rigel).
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Rigel)

install(TARGETS rigel EXPORT RigelTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The prefix of a .pc is the file's own place, wherever it is installed.
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
get_target_property(kokkos_is_imported Kokkos::kokkoscore IMPORTED)
if(kokkos_is_imported)
  include(cmake/RigelPkgConfig.cmake)
endif()
if(RIGEL_BUILD_C)
  install(TARGETS rigel_c EXPORT RigelCTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT RigelCTargets NAMESPACE Rigel:: DESTINATION ${package})
  configure_file(cmake/rigel_c.pc.in rigel_c.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/rigel_c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
install(EXPORT RigelTargets NAMESPACE Rigel:: DESTINATION ${package})

install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/include/rigel/config.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rigel)
# What a user's own functor is instantiated from.
foreach(backend IN LISTS backends)
  install(DIRECTORY backends/${backend} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rigel/backends
    FILES_MATCHING PATTERN "*.hpp")
endforeach()
if(Kokkos_ENABLE_CUDA)
  install(FILES cmake/kokkos_cuda13.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rigel/detail)
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/LICENSE)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/rigel)
endif()

configure_package_config_file(cmake/RigelConfig.cmake.in RigelConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(RigelConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/RigelConfig.cmake ${PROJECT_BINARY_DIR}/RigelConfigVersion.cmake cmake/RigelCompiler.cmake
  cmake/RigelFunctors.cmake
  DESTINATION ${package})
