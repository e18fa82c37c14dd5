# librigel_runtime.so: Clang, LLVM and the bitcode of the loops, for semirings from text. librigel opens it when it is first needed.

# rigel_find_llvm(<problem>): the static libraries of the LLVM and Clang that the compiler is of, in RIGEL_LLVM_LIBRARIES, those of
# zlib and zstd in RIGEL_COMPRESSION_LIBRARIES, LLVM's folder in RIGEL_LLVM_PREFIX, and llvm-objcopy in RIGEL_LLVM_OBJCOPY; <problem> receives
# what is missing.
function(rigel_find_llvm problem)
  file(REAL_PATH ${CMAKE_CXX_COMPILER} compiler)
  cmake_path(GET compiler PARENT_PATH folder)
  cmake_path(GET folder PARENT_PATH prefix)
  set(config ${folder}/llvm-config)
  if(NOT EXISTS ${config})
    set(${problem} "${config} is missing (Debian: llvm-22-dev)" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${config} --version OUTPUT_VARIABLE version ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+\\.[0-9]+" version "${version}")
  if(NOT version STREQUAL CMAKE_CXX_COMPILER_VERSION)
    set(${problem} "${config} is of LLVM ${version}, and the compiler of ${CMAKE_CXX_COMPILER_VERSION}" PARENT_SCOPE)
    return()
  endif()
  if(NOT EXISTS ${prefix}/lib/libclangCodeGen.a OR NOT EXISTS ${prefix}/include/clang/CodeGen/CodeGenAction.h)
    set(${problem} "${prefix}/lib/libclangCodeGen.a or Clang's headers are missing (Debian: libclang-22-dev)" PARENT_SCOPE)
    return()
  endif()
  if(NOT EXISTS ${folder}/llvm-objcopy)
    set(${problem} "${folder}/llvm-objcopy is missing (Debian: llvm-22)" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${config} --link-static --libfiles x86codegen x86desc x86info x86asmparser nvptxcodegen nvptxdesc nvptxinfo orcjit passes linker bitreader
    frontendopenmp frontendoffloading frontendhlsl frontenddriver lto coverage option windowsdriver
    OUTPUT_VARIABLE llvm ERROR_VARIABLE error RESULT_VARIABLE result OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(result)
    set(${problem} "${config} does not know the libraries: ${error}" PARENT_SCOPE)
    return()
  endif()
  separate_arguments(llvm UNIX_COMMAND "${llvm}")
  list(FILTER llvm EXCLUDE REGEX "Polly")  # Debian names it, and has it in a package of its own; src/runtime/compiler/polly.cpp
  file(GLOB clang ${prefix}/lib/libclang*.a)
  list(FILTER clang EXCLUDE REGEX "/libclang(\\.a|d|Daemon|Doc|Include|StaticAnalyzer|Tidy|Tooling)")  # clang, clangd and other tools
  set(compression)
  foreach(name IN ITEMS z zstd)
    find_library(RIGEL_STATIC_${name} NAMES lib${name}.a)
    if(NOT RIGEL_STATIC_${name})
      set(${problem} "lib${name}.a is missing (Debian: zlib1g-dev, libzstd-dev)" PARENT_SCOPE)
      return()
    endif()
    list(APPEND compression ${RIGEL_STATIC_${name}})
  endforeach()
  set(RIGEL_LLVM_LIBRARIES ${clang} ${llvm} PARENT_SCOPE)
  set(RIGEL_COMPRESSION_LIBRARIES ${compression} PARENT_SCOPE)
  set(RIGEL_LLVM_PREFIX ${prefix} PARENT_SCOPE)
  set(RIGEL_LLVM_OBJCOPY ${folder}/llvm-objcopy PARENT_SCOPE)
  set(${problem} "" PARENT_SCOPE)
endfunction()

set(default OFF)
if(PROJECT_IS_TOP_LEVEL)
  set(default AUTO)
endif()
set(RIGEL_RUNTIME ${default} CACHE STRING
  "Build librigel_runtime.so, which compiles semirings from text: ON (needs LLVM 22 and Clang 22 as libraries), OFF, or AUTO: if they are there")
set_property(CACHE RIGEL_RUNTIME PROPERTY STRINGS AUTO ON OFF)

set(problem)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR CMAKE_CROSSCOMPILING)
  set(problem "kernels from text are for Linux on x86-64")
elseif(NOT RIGEL_BACKEND_HOST)
  set(problem "this build has no host backend")
elseif(RIGEL_SANITIZE)
  set(problem "LLVM is not built with sanitizers")
else()
  rigel_find_llvm(problem)
endif()
if(RIGEL_RUNTIME STREQUAL "AUTO" AND NOT problem)
  set(is_built ON)
elseif(RIGEL_RUNTIME STREQUAL "AUTO")
  set(is_built OFF)
else()
  set(is_built ${RIGEL_RUNTIME})
endif()
if(NOT is_built)
  if(problem)
    message(STATUS "Rigel: semirings from text cannot be compiled: ${problem}")
  endif()
  return()
endif()
if(problem)
  message(FATAL_ERROR "RIGEL_RUNTIME is ON, but ${problem}. Configure with -DRIGEL_RUNTIME=OFF, or install what is missing.")
endif()

# The loops' bitcode, optimised but for what the texts say. It is never linked, so that no two levels meet. It is kept without the order of
# uses, an eighth of it.
set(folder ${PROJECT_BINARY_DIR}/runtime)
file(MAKE_DIRECTORY ${folder})
set(floating "Row rigel_text_exp(Row x) noexcept { return rigel::math::exponential(x); }
Row rigel_text_log(Row x) noexcept { return rigel::math::logarithm(x); }
Row rigel_text_power(Row x, Accumulator p) noexcept { return rigel::math::power(x, p); }")
set(floating_blocks "
Block rigel_text_exp_block(Block x) noexcept { return rigel::math::exponential(x); }
Block rigel_text_log_block(Block x) noexcept { return rigel::math::logarithm(x); }
Block rigel_text_power_block(Block x, Accumulator p) noexcept { return rigel::math::power(x, p); }")
set(types_f32 float)
set(types_f64 double)
set(types_f16 rigel::half)
set(types_bf16 rigel::bfloat16)
set(types_i32 std::int32_t)
set(types_i64 std::int64_t)
get_target_property(levels rigel RIGEL_HOST_LEVELS)
set(all)
set(places)
set(table)
add_executable(rigel_compress EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/src/runtime/bitcode/compress.cpp)
set_target_properties(rigel_compress PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${folder})
target_compile_features(rigel_compress PRIVATE cxx_std_20)
target_link_libraries(rigel_compress PRIVATE ${RIGEL_STATIC_zstd})
# rigel_embed_bitcode(<element> <level> <file>): the bitcode in <file> becomes one of bitcodes(), compressed to two fifths.
macro(rigel_embed_bitcode element level bitcode)
  set(file ${bitcode}.zst)
  add_custom_command(OUTPUT ${file} DEPENDS ${bitcode} rigel_compress COMMAND rigel_compress ${bitcode} ${file} VERBATIM)
  list(APPEND all ${file})
  set(name rigel_${level}_${element})
  string(APPEND places "asm(\".pushsection .rodata\\n.balign 16\\n.globl ${name}, ${name}_end\\n\"
    \".hidden ${name}, ${name}_end\\n\"
    \"${name}:\\n.incbin \\\"${file}\\\"\\n${name}_end:\\n.popsection\");
extern \"C\" const char ${name}[], ${name}_end[];\n")
  string(APPEND table "    {\"${element}\", \"${level}\", ${name}, ${name}_end},\n")
endmacro()
# rigel_host_bitcode(<name> <element> <level> <template> [<functions>]): the bitcode of a template's loops, as <name>. The functions are those
# that texts of floating-point numbers call.
macro(rigel_host_bitcode name element level template)
  set(RIGEL_LEVEL ${level})
  set(RIGEL_ELEMENT ${types_${element}})
  set(RIGEL_FUNCTIONS)
  if(${element} MATCHES "f")
    set(RIGEL_FUNCTIONS "${ARGV4}")
  endif()
  set(stem ${folder}/text_${level}_${name})
  configure_file(${template} ${stem}.cpp @ONLY)
  add_custom_command(OUTPUT ${stem}.bc DEPFILE ${stem}.d DEPENDS ${stem}.cpp
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${CMAKE_CXX_COMPILER} -std=c++20 -O2 -DNDEBUG -ffp-contract=off -fwrapv -fno-rtti -fignore-exceptions -fPIC
      ${RIGEL_FLAGS_${level}} -Wall -Wextra -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_BINARY_DIR}/include
      -MD -MT ${stem}.bc -MF ${stem}.d -emit-llvm -Xclang -no-emit-llvm-uselists -c ${stem}.cpp -o ${stem}.bc
    COMMENT "Bitcode of the loops for texts at level ${level}: ${name}" VERBATIM)
  rigel_embed_bitcode(${name} ${level} ${stem}.bc)
endmacro()
foreach(level IN LISTS levels)
  foreach(element IN ITEMS f32 f64 f16 bf16 i32 i64)
    rigel_host_bitcode(${element} ${element} ${level} ${PROJECT_SOURCE_DIR}/backends/host/text.cpp.in "${floating}${floating_blocks}")
    rigel_host_bitcode(gradient_${element} ${element} ${level} ${PROJECT_SOURCE_DIR}/backends/host/text_gradient.cpp.in "${floating}")
  endforeach()
endforeach()

# The kernels for GPUs, which need the headers of a CUDA toolkit, whatever Kokkos this build has. They are for the least architecture,
# and are optimised but for what the texts say.
set(RIGEL_RUNTIME_CUDA "AUTO" CACHE STRING
  "The CUDA toolkit for kernels from text: its folder, AUTO: that of Kokkos or one that is found, or OFF: librigel_runtime.so has none")
set(toolkit ${RIGEL_RUNTIME_CUDA})
if(toolkit STREQUAL "AUTO")
  if(NOT CUDAToolkit_FOUND)
    find_package(CUDAToolkit QUIET)
  endif()
  set(toolkit OFF)
  if(CUDAToolkit_FOUND)
    cmake_path(GET CUDAToolkit_BIN_DIR PARENT_PATH toolkit)
  endif()
endif()
if(toolkit AND NOT EXISTS ${toolkit}/nvvm/libdevice)
  message(STATUS "Rigel: no kernels from text for GPUs: ${toolkit}/nvvm/libdevice is missing")
  set(toolkit OFF)
endif()
# rigel_gpu_bitcode(<name> <architecture> <template> [<family> <element>]): the bitcode of a template's kernels, as <name>.
macro(rigel_gpu_bitcode name architecture template)
  set(stem ${folder}/text_gpu_${name})
  set(source ${template})
  if("${template}" MATCHES "\\.in$")
    set(RIGEL_FAMILY ${ARGV3})
    set(RIGEL_ELEMENT ${types_${ARGV4}})
    set(source ${stem}.cpp)
    configure_file(${template} ${source} @ONLY)
  endif()
  add_custom_command(OUTPUT ${stem}.bc DEPFILE ${stem}.d DEPENDS ${source}
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${CMAKE_CXX_COMPILER} -std=c++20 -x cuda --cuda-path=${toolkit} -Wno-unknown-cuda-version
      --cuda-device-only --offload-arch=${architecture} -O3 -DNDEBUG -ffp-contract=off -Wall -Wextra
      -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_BINARY_DIR}/include
      -MD -MT ${stem}.bc -MF ${stem}.d -emit-llvm -Xclang -no-emit-llvm-uselists -c ${source} -o ${stem}.bc
    COMMENT "Bitcode of the kernels for texts on GPUs: ${name}" VERBATIM)
  rigel_embed_bitcode(${name} gpu ${stem}.bc)
endmacro()
set(backend ${PROJECT_SOURCE_DIR}/backends/cuda)
if(toolkit AND EXISTS ${backend})
  foreach(element IN ITEMS f32 f64 f16 bf16 i32 i64)
    rigel_gpu_bitcode(${element} sm_80 ${backend}/simt/text.cpp.in simt ${element})
  endforeach()
  foreach(element IN ITEMS f32 f64 f16 bf16 i32 i64)
    rigel_gpu_bitcode(gradient_${element} sm_80 ${backend}/gradient/text.cpp.in gradient ${element})
  endforeach()
  rigel_gpu_bitcode(functions sm_80 ${backend}/simt/text_functions.cpp)
  # Epilogues from text of products on tensor cores.
  foreach(element IN ITEMS f32 f16 bf16)
    rigel_gpu_bitcode(mma_${element} sm_80 ${backend}/tensor/text.cpp.in mma ${element})
  endforeach()
  foreach(element IN ITEMS f16 bf16)
    rigel_gpu_bitcode(hopper_${element} sm_90a ${backend}/tensor/text.cpp.in hopper ${element})
  endforeach()
endif()
file(CONFIGURE OUTPUT ${folder}/bitcode.cpp CONTENT "// Generated by cmake/RigelRuntime.cmake.
#include \"bitcode.hpp\"

@places@
namespace rigel::runtime {

std::span<const Bitcode> bitcodes() {
  static const Bitcode all[] = {
@table@  };
  return all;
}

}  // namespace rigel::runtime
" @ONLY)
set_source_files_properties(${folder}/bitcode.cpp PROPERTIES OBJECT_DEPENDS "${all}")

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/runtime/compiler/*.cpp)
add_library(rigel_runtime MODULE ${sources} ${folder}/bitcode.cpp $<TARGET_OBJECTS:rigel_text_sources>)
set(exports ${PROJECT_SOURCE_DIR}/src/runtime/compiler/exports.map)
set_target_properties(rigel_runtime PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS ${exports})
target_compile_features(rigel_runtime PRIVATE cxx_std_20)
target_include_directories(rigel_runtime PRIVATE ${PROJECT_SOURCE_DIR}/src/runtime/compiler)
target_include_directories(rigel_runtime SYSTEM PRIVATE ${RIGEL_LLVM_PREFIX}/include)
target_compile_definitions(rigel_runtime PRIVATE RIGEL_VERSION="${PROJECT_VERSION}" _GNU_SOURCE __STDC_CONSTANT_MACROS
  __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
# Optimising more takes longer here than it ever saves: the time goes to LLVM itself.
target_compile_options(rigel_runtime PRIVATE -O1 -fno-rtti -ffunction-sections -fdata-sections)
target_link_options(rigel_runtime PRIVATE LINKER:--version-script=${exports} LINKER:--gc-sections LINKER:-z,defs
  LINKER:--build-id=sha1 -s)
if(RIGEL_HAS_LLD)
  target_link_options(rigel_runtime PRIVATE -fuse-ld=lld LINKER:--icf=all)
endif()
# Copies of LLVM's and Clang's libraries without the tables that exceptions need, a fifteenth of what is linked: they are compiled without
# exceptions, and their threads have nothing that would catch one. They take 320 MB. A package that replaces the libraries may have older
# files, so the folder is named by what these are.
set(facts)
foreach(library IN LISTS RIGEL_LLVM_LIBRARIES)
  file(SIZE ${library} size)
  file(TIMESTAMP ${library} time)
  string(APPEND facts "${library} ${size} ${time}\n")
endforeach()
string(MD5 facts "${facts}")
set(copies ${folder}/llvm-${facts})
file(MAKE_DIRECTORY ${copies})
set(libraries)
foreach(library IN LISTS RIGEL_LLVM_LIBRARIES)
  cmake_path(GET library FILENAME name)
  set(copy ${copies}/${name})
  add_custom_command(OUTPUT ${copy} DEPENDS ${library}
    COMMAND ${RIGEL_LLVM_OBJCOPY} --remove-section=.eh_frame --remove-section=.rela.eh_frame ${library} ${copy} VERBATIM)
  list(APPEND libraries ${copy})
endforeach()
add_custom_target(rigel_llvm_libraries DEPENDS ${libraries})
add_dependencies(rigel_runtime rigel_llvm_libraries)
target_link_libraries(rigel_runtime PRIVATE -Wl,--start-group ${libraries} -Wl,--end-group ${RIGEL_COMPRESSION_LIBRARIES} pthread m ${CMAKE_DL_LIBS})
install(TARGETS rigel_runtime LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
