# RIGEL_SEMIRINGS: the zoo, read from its one list, RIGEL_ZOO in semirings.hpp. Each backend's instantiation template is configured
# once for each of these (and once for each level, where a backend has levels), so that every semiring is a translation unit
# of its own.
set(header ${CMAKE_CURRENT_LIST_DIR}/../include/rigel/semirings.hpp)
file(READ ${header} text)
string(REGEX MATCHALL "\n  X\\([a-z0-9_]+" RIGEL_SEMIRINGS "${text}")
list(TRANSFORM RIGEL_SEMIRINGS REPLACE "\n  X\\(" "")
if(NOT RIGEL_SEMIRINGS)
  message(FATAL_ERROR "${header} has no lines '  X(<semiring>, …)' of RIGEL_ZOO")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
