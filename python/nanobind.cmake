# nanobind out of the Python that builds a wheel, or out of .deps/py (deploy/python.txt); without it
# the extension is left out, unless a wheel was asked for.
if(NOT Python_EXECUTABLE)
  set(Python_EXECUTABLE ${CMAKE_SOURCE_DIR}/.deps/py/bin/python)
endif()
set(TETRION_NANOBIND "")
if(EXISTS ${Python_EXECUTABLE})
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
    OUTPUT_VARIABLE TETRION_NANOBIND OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(TETRION_PYTHON_EXECUTABLE ${Python_EXECUTABLE} CACHE INTERNAL "builds and tests the package")
if(TETRION_NANOBIND)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module
    ${SKBUILD_SABI_COMPONENT})
  find_package(nanobind CONFIG REQUIRED PATHS ${TETRION_NANOBIND} NO_DEFAULT_PATH)
elseif(TETRION_WHEEL)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no nanobind: build the wheel with pip wheel .")
else()
  message(STATUS "No nanobind in ${Python_EXECUTABLE}: the Python package is left out; ./tetrion test installs it")
endif()
