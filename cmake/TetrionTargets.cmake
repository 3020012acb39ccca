# One call per target: a folder's CMakeLists.txt is a list of files and dependencies.
include(CMakeParseArguments)

# Adds a folder's CMakeLists.txt.
function(tetrion_module folder)
  if(EXISTS ${CMAKE_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${CMAKE_SOURCE_DIR}/${folder} ${CMAKE_BINARY_DIR}/${folder})
  endif()
endfunction()

# With TETRION_UNITY, files of a target are compiled eight at once: headers take most of a
# compilation, and eight files read them together. Where two files cannot be read together, one is
# named after the target.
function(tetrion_unity target)
  if(TETRION_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    if(ARGN)
      set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endif()
endfunction()

# Folders with no hot loop, among them those that parse messages, files and options: their indices into
# the standard library's containers are checked in every build. In loops over lanes and rows every
# index would be; there the sanitizers' builds check.
set(TETRION_CHECKED_FOLDERS lib/checkpoint lib/http lib/metrics lib/run lib/setup lib/wire services/common
  services/coordinator tools/keygen tools/load tools/up)
function(tetrion_check_indices target)
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(folder IN_LIST TETRION_CHECKED_FOLDERS AND NOT TETRION_SANITIZE)
    target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
  endif()
endfunction()

# All files of the target use the tensor library: they read its header as TetrionHeaders.cmake has
# compiled it, for code of programs. A library of them is compiled as programs are, too, and can be linked
# into nothing else.
function(tetrion_torch_header target)
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL EXECUTABLE)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIE>)
  endif()
  target_precompile_headers(${target} REUSE_FROM tetrion_torch_header)
endfunction()

# tetrion_library(NAME [SRCS a.cc ...] [APART ...] [DEPS tetrion::core ...]): target tetrion::NAME.
# Without sources the library is header-only. APART: see tetrion_unity.
function(tetrion_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;APART;DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(tetrion_${name} STATIC ${ARG_SRCS})
    target_link_libraries(tetrion_${name} PUBLIC tetrion_flags ${ARG_DEPS})
    tetrion_check_indices(tetrion_${name})
    tetrion_unity(tetrion_${name} ${ARG_APART})
  else()
    add_library(tetrion_${name} INTERFACE)
    target_link_libraries(tetrion_${name} INTERFACE tetrion_flags ${ARG_DEPS})
  endif()
  add_library(tetrion::${name} ALIAS tetrion_${name})
endfunction()

# tetrion_program(NAME SRCS ... DEPS ...): an executable build/<preset>/bin/NAME.
function(tetrion_program name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE tetrion_flags ${ARG_DEPS})
  tetrion_check_indices(${name})
endfunction()

# tetrion_test(NAME [ONE_THREAD] [SHARDS n] SRCS ... [APART ...] DEPS ... [LABELS unit]): one GoogleTest program,
# one ctest entry a case, under a sanitizer one for all: there starting a process takes longer than most
# cases. APART: see tetrion_unity. SHARDS: entries that share the cases there, where these wait for
# minutes. ONE_THREAD: neither the tests nor what they call start a thread, so
# that ThreadSanitizer has nothing to see and its builds leave the program out.
function(tetrion_test name)
  cmake_parse_arguments(ARG "ONE_THREAD" "TIMEOUT;SHARDS" "SRCS;APART;DEPS;LABELS" ${ARGN})
  if(ARG_ONE_THREAD AND TETRION_SANITIZE MATCHES thread)
    return()
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SRCS})
  if(TETRION_SANITIZE MATCHES thread)
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/tsan_suppressions.cc)
    # The code under test keeps its -O2; optimising instrumented test bodies takes most of a build.
    # Not -O0: there every memory order becomes the strongest, and a missing barrier is not missed.
    target_compile_options(${name} PRIVATE -O1)
  elseif(NOT TETRION_SANITIZE AND NOT name MATCHES "_sim$")
    # Half of a build from nothing is the bodies of tests, which need no more; kernels on the simulator do.
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O1>)
  endif()
  target_link_libraries(${name} PRIVATE tetrion_flags ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  if(TETRION_SANITIZE MATCHES undefined)
    # Which class an object is of is asked in libraries: in GoogleTest's own code the question takes a
    # sixth of a compilation. A null pointer that a test reads, or an address beyond an object, stops it
    # without UBSan's checks of them, another fifth.
    target_compile_options(${name} PRIVATE -fno-sanitize=vptr,null,object-size)
  endif()
  target_precompile_headers(${name} REUSE_FROM tetrion_test_header)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Read from a compiled header, std::string's operator+ makes GCC 12 warn wrongly (GCC bug 105651).
    # AddressSanitizer's build sees what these would.
    target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
  endif()
  tetrion_unity(${name} ${ARG_APART})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if("gpu" IN_LIST ARG_LABELS)
    set(list TETRION_GPU_TESTS)
    if("services" IN_LIST ARG_LABELS)
      set(list TETRION_SERVICES_GPU_TESTS)
    endif()
    set_property(GLOBAL APPEND PROPERTY ${list} ${name})
  endif()
  if("learning" IN_LIST ARG_LABELS)
    set_property(GLOBAL APPEND PROPERTY TETRION_LEARNING_TESTS ${name})
  endif()
  if(TETRION_SANITIZE)
    if(NOT ARG_SHARDS)
      set(ARG_SHARDS 1)
    endif()
    list(LENGTH ARG_SRCS files)  # those of many files begin first
    foreach(shard RANGE 1 ${ARG_SHARDS})
      set(entry ${name})
      if(ARG_SHARDS GREATER 1)
        string(APPEND entry .${shard}of${ARG_SHARDS})
      endif()
      math(EXPR index "${shard} - 1")
      add_test(NAME ${entry} COMMAND ${name})
      set_tests_properties(${entry} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 1200 COST ${files}
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
    endforeach()
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
  endif()
endfunction()

# tetrion_bench(NAME SRCS ... DEPS ...): a benchmark program in build/<preset>/bench.
function(tetrion_bench name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE tetrion_flags ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endfunction()

# The sources with a wrapper in place of every .cu file, through which g++ compiles it for the
# simulator.
function(tetrion_sim_sources result)
  set(sources)
  foreach(source ${ARGN})
    if(source MATCHES "\\.cu$")
      file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      string(REGEX REPLACE "\\.cu$" "_cu.cc" wrapper ${CMAKE_BINARY_DIR}/sim/${path})
      file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"${path}\"\n")
      list(APPEND sources ${wrapper})
    else()
      list(APPEND sources ${source})
    endif()
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# What ARG_SRCS and ARG_LIBS of the caller mean to either backend: sets sim_sources, sim_libs and
# device_libs there.
macro(tetrion_both_backends)
  tetrion_sim_sources(sim_sources ${ARG_SRCS})
  list(TRANSFORM ARG_LIBS REPLACE "(.+)" "tetrion::\\1_sim" OUTPUT_VARIABLE sim_libs)
  list(TRANSFORM ARG_LIBS REPLACE "(.+)" "tetrion::\\1_device" OUTPUT_VARIABLE device_libs)
  list(APPEND sim_libs tetrion::cuda_sim)
  list(APPEND device_libs tetrion::cuda_device)
endmacro()

# tetrion_cuda_library(NAME [NO_FMA] SRCS a.cc ... [DEPS ...] [LIBS ...]): one library over both
# backends of lib/cuda: tetrion::NAME_sim, and with TETRION_CUDA tetrion::NAME_device. LIBS are others
# of that kind, by NAME. NO_FMA: no multiplication is fused with an addition, as in code that must give
# the same numbers on both. The Python package has none.
function(tetrion_cuda_library name)
  if(TETRION_WHEEL)
    return()
  endif()
  cmake_parse_arguments(ARG "NO_FMA" "" "SRCS;DEPS;LIBS" ${ARGN})
  tetrion_both_backends()
  # Files of kernels have the same names for their blocks and teams.
  set(kernels ${sim_sources})
  list(FILTER kernels INCLUDE REGEX "_cu\\.cc$")
  tetrion_library(${name}_sim SRCS ${sim_sources} APART ${kernels} DEPS ${ARG_DEPS} ${sim_libs})
  if(ARG_NO_FMA)
    target_compile_options(tetrion_${name}_sim PRIVATE -ffp-contract=off)
  endif()
  if(TETRION_CUDA)
    tetrion_library(${name}_device SRCS ${ARG_SRCS} DEPS ${ARG_DEPS} ${device_libs})
    if(ARG_NO_FMA)
      target_compile_options(tetrion_${name}_device PRIVATE
        $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
        $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffp-contract=off>)
    endif()
  endif()
endfunction()

# tetrion_script_test(NAME SCRIPT ...): a test of text or scripts by Debian's Python and its
# standard library. A sanitizer has no part in it.
function(tetrion_script_test name)
  if(TETRION_SANITIZE)
    return()
  endif()
  add_test(NAME ${name} COMMAND /usr/bin/python3 -B ${ARGN}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 120)
endfunction()

# Writes programs that a global property names into a file of the build, one a line: sim_tests.txt
# for tests/tidy, which asks them what kernels they run, learning_tests.txt for .ci/run, and for
# tests/gpu/bundle.sh gpu_*.txt, of which it builds the target gpu_programs, and services_gpu_tests.txt.
function(tetrion_list_programs property file)
  get_property(programs GLOBAL PROPERTY ${property})
  set(lines)
  foreach(program ${programs})
    string(APPEND lines "$<TARGET_FILE:${program}>\n")
  endforeach()
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/${file} CONTENT "${lines}")
  if(programs AND file MATCHES "^gpu_")
    add_dependencies(gpu_programs ${programs})
  endif()
endfunction()
foreach(list TETRION_SIM_TESTS:sim_tests.txt TETRION_LEARNING_TESTS:learning_tests.txt
    TETRION_GPU_TESTS:gpu_tests.txt TETRION_GPU_BENCHES:gpu_benches.txt
    TETRION_SERVICES_GPU_TESTS:services_gpu_tests.txt)
  string(REPLACE ":" ";" list ${list})
  cmake_language(EVAL CODE
    "cmake_language(DEFER DIRECTORY \"${CMAKE_SOURCE_DIR}\" CALL tetrion_list_programs ${list})")
endforeach()
add_custom_target(gpu_programs)

# tetrion_cuda_test(NAME SRCS a.cc ... [DEPS ...] [LIBS ...]): one suite over both backends of
# lib/cuda: NAME_sim, whose .cu files g++ compiles for the simulator, and with TETRION_CUDA
# NAME_device, which skips where no device is. LIBS: libraries of tetrion_cuda_library, by NAME.
# SERVICES: it needs what services link, so tests/gpu/bundle.sh packs it with them alone. ONE_THREAD: as
# for tetrion_test.
function(tetrion_cuda_test name)
  cmake_parse_arguments(ARG "SERVICES;ONE_THREAD" "" "SRCS;DEPS;LIBS" ${ARGN})
  tetrion_both_backends()
  set(one_thread)
  if(ARG_ONE_THREAD)
    set(one_thread ONE_THREAD)
  endif()
  tetrion_test(${name}_sim ${one_thread} SRCS ${sim_sources} APART ${sim_sources}
    DEPS ${ARG_DEPS} ${sim_libs})
  if(TARGET ${name}_sim)
    set_property(GLOBAL APPEND PROPERTY TETRION_SIM_TESTS ${name}_sim)
  endif()
  if(TETRION_CUDA)
    set(labels gpu)
    if(ARG_SERVICES)
      list(APPEND labels services)
    endif()
    tetrion_test(${name}_device SRCS ${ARG_SRCS} DEPS ${ARG_DEPS} ${device_libs}
      LABELS ${labels})
  endif()
endfunction()

# tetrion_cuda_bench(NAME SRCS a.cc ... [DEPS ...] [LIBS ...]): a benchmark program over both backends
# of lib/cuda: NAME_sim, which measures nothing but shows that the program runs, and with TETRION_CUDA
# NAME_device, which tests/gpu/bundle.sh packs. LIBS: libraries of tetrion_cuda_library, by NAME.
function(tetrion_cuda_bench name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;LIBS" ${ARGN})
  tetrion_both_backends()
  tetrion_bench(${name}_sim SRCS ${sim_sources} DEPS ${ARG_DEPS} ${sim_libs})
  # Not among those that ./tetrion bench runs.
  set_target_properties(${name}_sim PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(TETRION_CUDA)
    tetrion_bench(${name}_device SRCS ${ARG_SRCS} DEPS ${ARG_DEPS} ${device_libs})
    set_property(GLOBAL APPEND PROPERTY TETRION_GPU_BENCHES ${name}_device)
  endif()
endfunction()
