#include "lib/core/error.h"
#include "python/src/bindings.h"

// tetrion._core: the compiled part of the package. Its users are the Python files beside it, which
// document and check what is passed; nothing here is public.
NB_MODULE(_core, m) {
  // What an Error reports is a bad argument or a bad file of the caller's.
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const tetrion::Error& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    }
  });
  tetrion::BindCollector(m);
  tetrion::BindEnvs(m);
}
