#include "lib/wire/remote_path.h"

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <string_view>

namespace tetrion::wire {
namespace {

constexpr const char* kScheme = "remote:";
constexpr std::size_t kProcessDigits = 16;

}  // namespace

std::string RemoteRingPath(std::uint64_t process, std::uint32_t worker) {
  char path[64];
  std::snprintf(path, sizeof(path), "%s%016llx.%u", kScheme,
                static_cast<unsigned long long>(process), worker);
  return path;
}

bool IsRemoteRingPath(const std::string& path, std::uint64_t* process, std::uint32_t* worker) {
  if (path.rfind(kScheme, 0) != 0) return false;
  const char* digits = path.data() + std::string_view(kScheme).size();
  const char* end = path.data() + path.size();
  std::uint64_t parsed_process = 0;
  std::uint32_t parsed_worker = 0;
  if (end - digits < static_cast<std::ptrdiff_t>(kProcessDigits) + 2) return false;
  (void)std::from_chars(digits, digits + kProcessDigits, parsed_process, 16);
  (void)std::from_chars(digits + kProcessDigits + 1, end, parsed_worker);
  // One spelling only: a path is an identity.
  if (RemoteRingPath(parsed_process, parsed_worker) != path) return false;
  if (process != nullptr) *process = parsed_process;
  if (worker != nullptr) *worker = parsed_worker;
  return true;
}

}  // namespace tetrion::wire
