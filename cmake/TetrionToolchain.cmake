# Compiler flags shared by every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)

# Every compiled target links this: warnings, architecture, hardening, sanitizers.
add_library(tetrion_flags INTERFACE)
target_include_directories(tetrion_flags INTERFACE ${CMAKE_SOURCE_DIR})
# Warnings are no errors in a release build: those of another compiler must not keep its user from
# measuring.
target_compile_options(tetrion_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wno-missing-field-initializers
  $<$<NOT:$<CONFIG:Release>>:-Werror> -fno-omit-frame-pointer -fstack-protector-strong>)
# Names of C++ files in messages begin below this folder, wherever it lies. With what .ci/run tells the
# compiler's cache, a copy of the tree then finds its objects there, also those of files compiled together.
target_compile_options(tetrion_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns at -O3 of overlapping copies in std::string's operator+ (GCC bug 105651) and of
  # strings in an aggregate that was just made.
  target_compile_options(tetrion_flags INTERFACE
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Wno-restrict;-Wno-maybe-uninitialized>")
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(tetrion_flags INTERFACE -Wthread-safety)
endif()
if(TETRION_NATIVE)
  target_compile_options(tetrion_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
else()
  target_compile_options(tetrion_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v3>)
endif()
if(MOLD_PROGRAM)
  target_link_options(tetrion_flags INTERFACE -fuse-ld=mold)
endif()
target_link_options(tetrion_flags INTERFACE -Wl,-z,relro,-z,now)
set(TETRION_SANITIZE "" CACHE STRING "Sanitizers for every target, as for -fsanitize=")
if(TETRION_SANITIZE)
  target_compile_options(tetrion_flags INTERFACE -fsanitize=${TETRION_SANITIZE} -fno-sanitize-recover=all)
  target_compile_definitions(tetrion_flags INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(tetrion_flags INTERFACE -fsanitize=${TETRION_SANITIZE})
  if(TETRION_SANITIZE MATCHES address)
    # It looks at addresses, which -O1 computes as well and in two thirds of the compiler's time.
    # ThreadSanitizer's builds keep -O2, where a missing barrier is missed as it would be in use.
    target_compile_options(tetrion_flags INTERFACE -O1)
  endif()
else()
  # The sanitizers check the same calls, and see them only where glibc's checks do not replace them.
  # Those need an optimising compiler.
  target_compile_options(tetrion_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fcf-protection>"
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
endif()

if(TETRION_CUDA)
  find_program(NVCC_PROGRAM nvcc HINTS /usr/local/cuda/bin REQUIRED)
  set(CMAKE_CUDA_COMPILER ${NVCC_PROGRAM})
  set(CMAKE_CUDA_ARCHITECTURES 90)
  enable_language(CUDA)
  # CMake 3.25 does not know the CUDA20 dialect, which CMAKE_CXX_STANDARD 20 asks for.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  string(APPEND CMAKE_CUDA_FLAGS " -Werror all-warnings")
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  # A test may need what only the machine with the device has: ctest asks for its cases there.
  set(CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE PRE_TEST)
endif()
