#include <new>
#include <system_error>

#include "lib/core/error.h"
#include "python/src/bindings.h"

// tetrion._core: the compiled part of the package. Its users are the Python files beside it, which
// document and check what is passed; nothing here is public.
NB_MODULE(_core, m) {
#ifdef NDEBUG
  // What is alive at exit is the user's to keep, and no message of ours.
  nanobind::set_leak_warnings(false);
#endif
  // What an Error reports is a bad argument or a bad file of the caller's.
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const tetrion::Error& error) {
      // kTryAgain is what set-up says when the machine has no memory left.
      const bool memory = error.code() == tetrion::ExitCode::kTryAgain;
      PyErr_SetString(memory ? PyExc_MemoryError : PyExc_ValueError, error.what());
    } catch (const std::bad_alloc&) {
      PyErr_SetString(PyExc_MemoryError,
                      "the machine has no memory for it: make fewer environments or episodes, or "
                      "take a smaller obs");
    } catch (const std::system_error& error) {
      const bool thread = error.code() == std::errc::resource_unavailable_try_again;
      PyErr_SetString(PyExc_RuntimeError,
                      thread ? "a thread cannot be started: take fewer threads or workers, or "
                               "raise ulimit -u and ulimit -v, or the container's limits"
                             : error.what());
    }
  });
  tetrion::BindCollector(m);
  tetrion::BindEnvs(m);
  tetrion::BindRegistry(m);
}
