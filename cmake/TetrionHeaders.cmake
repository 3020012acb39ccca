# Headers that take seconds to read, each compiled once for all targets that read it: most of a build
# from nothing is reading them. A file must include what it uses all the same: clang reads each without
# (tests/tidy/clang.py).

# tetrion_compiled_header(NAME KIND HEADER [LIBS ...]): KIND is LIBRARY or PROGRAM, since a compiled
# header fits code of one kind: that of libraries is position independent otherwise than a program's.
function(tetrion_compiled_header name kind header)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  set(source ${CMAKE_SOURCE_DIR}/cmake/compiled_header.cc)
  if(kind STREQUAL PROGRAM)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
  else()
    add_library(${name} OBJECT EXCLUDE_FROM_ALL ${source})
  endif()
  target_link_libraries(${name} PRIVATE tetrion_flags ${ARG_LIBS})
  target_precompile_headers(${name} PRIVATE ${CMAKE_SOURCE_DIR}/${header})
endfunction()

tetrion_compiled_header(tetrion_test_header PROGRAM tests/support/test_header.h LIBS GTest::gmock)
if(TETRION_TORCH)
  tetrion_compiled_header(tetrion_torch_header_of_library LIBRARY lib/nn/torch/torch_pch.h LIBS torch::cpu)
  tetrion_compiled_header(tetrion_torch_header_of_program PROGRAM lib/nn/torch/torch_pch.h LIBS torch::cpu)
endif()
