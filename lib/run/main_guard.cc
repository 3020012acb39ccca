#include "lib/run/main_guard.h"

#include <cstdio>
#include <exception>
#include <string_view>

#include "lib/core/error.h"

namespace tetrion {
namespace {

// The last part of argv[0].
std::string_view ProgramName(int argc, const char* const* argv) noexcept {
  const std::string_view path = argc > 0 ? argv[0] : "tetrion";
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

int Report(std::string_view program, const char* what, ExitCode code) noexcept {
  std::fprintf(stderr, "%.*s: error: %s\n", static_cast<int>(program.size()), program.data(), what);
  return static_cast<int>(code);
}

}  // namespace

int GuardedMain(int argc, const char* const* argv,
                const std::function<int(int, const char* const*)>& fn) noexcept {
  const std::string_view program = ProgramName(argc, argv);
  try {
    return fn(argc, argv);
  } catch (const Error& error) {
    return Report(program, error.what(), error.code());
  } catch (const std::exception& error) {
    return Report(program, error.what(), ExitCode::kInternal);
  } catch (...) {
    return Report(program, "unknown exception", ExitCode::kInternal);
  }
}

}  // namespace tetrion
