# libtorch out of the unpacked torch wheel (deploy/wheels.txt) as torch::cpu, without the wheel's own
# CMake configuration, which demands a CUDA compiler even for the CPU libraries.
# TETRION_TORCH_ROOT: the folder the wheels were unpacked into.
set(TETRION_TORCH_ROOT ${CMAKE_SOURCE_DIR}/.deps/torch CACHE PATH "Folder with the unpacked torch wheels")
find_path(TORCH_WHEEL_INCLUDE torch/csrc/api/include/torch/torch.h
  PATHS ${TETRION_TORCH_ROOT}/torch/include NO_DEFAULT_PATH)
set(TORCH_WHEEL_LIB ${TETRION_TORCH_ROOT}/torch/lib)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TorchWheel REQUIRED_VARS TORCH_WHEEL_INCLUDE
  REASON_FAILURE_MESSAGE "run ./tetrion test (it unpacks the wheels into .deps/torch) or configure with -DTETRION_TORCH=OFF")
if(TorchWheel_FOUND AND NOT TARGET torch::cpu)
  add_library(torch::c10 SHARED IMPORTED)
  set_target_properties(torch::c10 PROPERTIES IMPORTED_LOCATION ${TORCH_WHEEL_LIB}/libc10.so)
  # What its threads are; loaded with torch::cpu.
  add_library(torch::threads SHARED IMPORTED)
  set_target_properties(torch::threads PROPERTIES IMPORTED_LOCATION ${TORCH_WHEEL_LIB}/libgomp.so.1)
  add_library(torch::cpu SHARED IMPORTED)
  set_target_properties(torch::cpu PROPERTIES
    IMPORTED_LOCATION ${TORCH_WHEEL_LIB}/libtorch_cpu.so
    INTERFACE_LINK_LIBRARIES torch::c10)
  target_include_directories(torch::cpu SYSTEM INTERFACE
    ${TORCH_WHEEL_INCLUDE} ${TORCH_WHEEL_INCLUDE}/torch/csrc/api/include)
  # The wheel's libtorch_cpu needs cupti and cudart, which lie beside it in wheels of their own.
  target_link_options(torch::cpu INTERFACE
    -Wl,-rpath-link,${TETRION_TORCH_ROOT}/nvidia/cu13/lib -Wl,--allow-shlib-undefined)
  set(TORCH_WHEEL_RPATH ${TORCH_WHEEL_LIB};${TETRION_TORCH_ROOT}/nvidia/cu13/lib)
  list(APPEND CMAKE_BUILD_RPATH ${TORCH_WHEEL_RPATH})
endif()
# Its part for CUDA, where all of torch is there (a whole installation, not what ./tetrion unpacks).
if(TorchWheel_FOUND AND NOT TARGET torch::cuda AND EXISTS ${TORCH_WHEEL_LIB}/libtorch_cuda.so)
  add_library(torch::cuda INTERFACE IMPORTED)
  target_link_libraries(torch::cuda INTERFACE torch::cpu
    ${TORCH_WHEEL_LIB}/libtorch_cuda.so ${TORCH_WHEEL_LIB}/libc10_cuda.so)
endif()
