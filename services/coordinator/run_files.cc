#include "services/coordinator/run_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/core/log.h"

namespace tetrion::coordinator {
namespace {

constexpr std::int64_t kEndpointsEveryNs = kNanosPerSecond;
constexpr std::int64_t kLineEveryNs = 5 * kNanosPerSecond;

}  // namespace

RunFiles::RunFiles(const RunFolder& folder, const std::string& http_address,
                   const ControlAgent& control, MetricsRegistry& registry, const Clock& clock)
    : folder_(folder),
      control_(control),
      clock_(clock),
      endpoints_(folder, control.endpoint(), http_address),
      endpoint_errors_(registry.Counter("tetrion_coordinator_file_errors_total", {"endpoints"})),
      line_errors_(registry.Counter("tetrion_coordinator_file_errors_total", {"metrics"})),
      next_line_ns_(clock.NowNs() + kLineEveryNs) {}

void RunFiles::Tick() {
  const std::int64_t now_ns = clock_.NowNs();
  const bool changed = !endpoints_written_ || control_.members_revision() != members_written_;
  if (changed && now_ns >= next_endpoints_ns_) {
    next_endpoints_ns_ = now_ns + kEndpointsEveryNs;
    WriteEndpointFiles();
  }
  if (now_ns >= next_line_ns_) {
    next_line_ns_ = now_ns + kLineEveryNs;
    if (!AppendLine()) line_errors_.Increment();
  }
}

void RunFiles::WriteEndpointFiles() {
  const std::uint64_t revision = control_.members_revision();
  try {
    endpoints_.Write(control_.Members());
    endpoints_written_ = true;
    members_written_ = revision;
    Report("");
  } catch (const Error& error) {
    endpoint_errors_.Increment();
    Report(error.what());
  }
}

bool RunFiles::AppendLine() {
  const std::string line = control_.Status() + "\n";
  const FileDescriptor file(
      open(folder_.metrics_jsonl().c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) return false;
  const ssize_t written = write(file.get(), line.data(), line.size());
  return written == static_cast<ssize_t>(line.size());
}

void RunFiles::Finish() {
  if (!AppendLine()) log::warn("cannot write the last line of {}", folder_.metrics_jsonl());
  try {
    WriteAtomically(folder_.path() + "/summary.json", control_.Status() + "\n");
  } catch (const Error& error) {
    log::error("no summary: {}", error.what());
  }
}

void RunFiles::Report(const std::string& problem) {
  MutexLock lock(mu_);
  if (problem == problem_) return;
  if (!problem.empty()) {
    log::error("{}; tried again each second", problem);
  } else {
    log::info("the run folder can be written again");
  }
  problem_ = problem;
}

std::string RunFiles::Problem() const {
  MutexLock lock(mu_);
  return problem_;
}

}  // namespace tetrion::coordinator
