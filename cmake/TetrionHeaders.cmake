# Headers that take seconds to read, each compiled once for all targets that read it: most of a build
# from nothing is reading them. A file must include what it uses all the same: clang reads each without
# (tests/tidy/clang.py).

# tetrion_compiled_header(NAME HEADER [LIBS ...]): a compiled header fits code of one kind, here that of
# programs; a library's is position independent otherwise.
function(tetrion_compiled_header name header)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/cmake/compiled_header.cc)
  target_link_libraries(${name} PRIVATE tetrion_flags ${ARG_LIBS})
  target_precompile_headers(${name} PRIVATE ${CMAKE_SOURCE_DIR}/${header})
endfunction()

tetrion_compiled_header(tetrion_test_header tests/support/test_header.h LIBS GTest::gmock)
if(TETRION_TORCH)
  tetrion_compiled_header(tetrion_torch_header lib/nn/torch/torch_pch.h LIBS torch::cpu)
endif()
