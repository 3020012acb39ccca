#include "tools/up/run_services.h"

#include <unistd.h>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/nowait_writer.h"
#include "lib/http/http_get.h"
#include "lib/shm/shm_dir.h"

namespace tetrion {
namespace {

constexpr int kPollTimeoutMs = 500;

}  // namespace

std::uint64_t RunIdIn(const RunFolder& folder) {
  try {
    return ReadEndpoints(folder.endpoints_json()).run_id;
  } catch (const Error&) {
    return kNoRun;
  }
}

RunServices::RunServices(const UpOptions& options, const RunPlan& plan, std::int64_t poll_period_ns)
    : folder_(RunFolder::At(plan.folder)),
      shm_dir_(options.shm_dir.empty() ? DefaultShmDir() : options.shm_dir),
      poll_period_ns_(poll_period_ns),
      processes_(folder_.logs()),
      supervisor_(plan.children, options.drain_timeout_s * kNanosPerSecond, processes_,
                  MonotonicClock::Get()) {}

// A coordinator that is not there (yet, or any more) is no error: the supervisor sees to it.
const std::optional<RunStatus>& RunServices::Poll() {
  const std::int64_t now_ns = MonotonicClock::Get().NowNs();
  const pid_t coordinator = supervisor_.PidOf("coordinator");
  if (now_ns < next_poll_ns_ || coordinator == 0) return status_;
  next_poll_ns_ = now_ns + poll_period_ns_;
  try {
    const Endpoints endpoints = ReadEndpoints(folder_.endpoints_json());
    const auto http = endpoints.http.find("coordinator");
    if (endpoints.pid != coordinator || http == endpoints.http.end()) return status_;
    const std::optional<RunStatus> status =
        ParseStatus(HttpGet(http->second, "/status", kPollTimeoutMs));
    if (status) status_ = Follow(status_, *status);
  } catch (const Error& error) {
    log::debug("no status: {}", error.what());
  }
  return status_;
}

void RunServices::ReportFailure() const {
  if (supervisor_.failed_child().empty()) return;
  std::string text = supervisor_.failed_child() + " failed; its last lines:\n";
  for (const std::string& line : processes_.LastLines(supervisor_.failed_child())) {
    text += "  " + line + "\n";
  }
  (void)NoWaitWriter(STDERR_FILENO).Write(text);
}

void RunServices::ReapSharedMemory(std::uint64_t to_resume) const {
  if (ListRegions(shm_dir_).empty()) return;
  try {
    RemoveStale(shm_dir_, to_resume);
  } catch (const Error& error) {
    log::warn("shared memory may be left in {}: {}", shm_dir_, error.what());
  }
}

void RunServices::EndAtOnce() {
  processes_.KillAll();
  ReapSharedMemory(kNoRun);
}

}  // namespace tetrion
