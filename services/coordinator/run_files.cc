#include "services/coordinator/run_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "lib/core/address.h"
#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/core/json.h"
#include "lib/core/log.h"
#include "lib/shm/shm_dir.h"

namespace tetrion::coordinator {
namespace {

constexpr std::int64_t kEndpointsEveryNs = kNanosPerSecond;
constexpr std::int64_t kLineEveryNs = 5 * kNanosPerSecond;
// In the order of RunFiles::File.
constexpr std::array<const char*, 2> kNames = {"endpoints.json and file_sd.json", "metrics.jsonl"};
constexpr std::array<const char*, 2> kRetried = {"each second", "with its next line, each 5 s"};
const std::string kTcp = "tcp://";
constexpr std::size_t kMaxSocketPathBytes = 107;  // sockaddr_un

bool CutTo(const std::string& path, off_t bytes) {
  std::error_code error;
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(bytes), error);
  return !error;
}

// Cuts the file after its last whole line: a death or a full disk in the middle of a line leaves a
// half one, which would make one with the next. Returns its size, -1 for an error.
off_t CutHalfLine(const std::string& path, int file) {
  const off_t size = lseek(file, 0, SEEK_END);
  off_t end = size;
  for (char last = 0; end > 0; --end) {
    if (pread(file, &last, 1, end - 1) != 1) return -1;
    if (last == '\n') break;
  }
  return end == size || CutTo(path, end) ? end : -1;
}

}  // namespace

RunFiles::RunFiles(const RunFolder& folder, std::uint64_t run_id, const ToldPlaces& told,
                   const ControlAgent& control, MetricsRegistry& registry, const Clock& clock)
    : folder_(folder),
      control_(control),
      clock_(clock),
      endpoints_(folder, run_id, told),
      errors_{&registry.Counter("tetrion_coordinator_file_errors_total", {"endpoints"}),
              &registry.Counter("tetrion_coordinator_file_errors_total", {"metrics"})},
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
    Report(File::kMetrics, AppendLine());
  }
}

void RunFiles::WriteEndpointFiles() {
  const std::uint64_t revision = control_.members_revision();
  try {
    endpoints_.Write(control_.Members());
    endpoints_written_ = true;
    members_written_ = revision;
    Report(File::kEndpoints, "");
  } catch (const Error& error) {
    Report(File::kEndpoints, error.what());
  }
}

std::string RunFiles::AppendLine() const {
  const std::string path = folder_.metrics_jsonl(), line = control_.Status() + "\n";
  const auto failed = [&path](const char* what, int reason) {
    return std::string("cannot ") + what + " " + path + ": " + std::strerror(reason);
  };
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) return failed("open", errno);
  const off_t end = CutHalfLine(path, file.get());
  if (end < 0) return failed("cut the half line at the end of", errno);
  const ssize_t written = write(file.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return "";
  const int reason = written < 0 ? errno : ENOSPC;  // a full disk takes a part
  static_cast<void>(CutTo(path, end));              // failing that, the next call cuts it
  return failed("append to", reason);
}

void RunFiles::Finish() {
  const std::string problem = AppendLine();
  if (!problem.empty()) log::warn("{}; its last line is missing", problem);
  try {
    WriteAtomically(folder_.path() + "/summary.json", control_.Status() + "\n");
  } catch (const Error& error) {
    log::error("no summary: {}", error.what());
  }
  try {
    endpoints_.ClearTargets();
  } catch (const Error& error) {
    log::warn("Prometheus is not told that the run has ended: {}", error.what());
  }
}

void RunFiles::Report(File file, const std::string& problem) {
  const auto f = static_cast<std::size_t>(file);
  if (!problem.empty()) errors_[f]->Increment();
  MutexLock lock(mu_);
  if (problem == problems_[f]) return;
  if (!problem.empty()) {
    log::error("{}; tried again {}", problem, kRetried[f]);
  } else {
    log::info("{} can be written again", kNames[f]);
  }
  problems_[f] = problem;
}

std::string RunFiles::Problem() const {
  MutexLock lock(mu_);
  std::string all;
  for (const std::string& problem : problems_) {
    if (!problem.empty()) all += (all.empty() ? "" : "; ") + problem;
  }
  return all;
}

EndpointsWriter::EndpointsWriter(const RunFolder& folder, std::uint64_t run_id, ToldPlaces told)
    : folder_(folder), run_id_(run_id), told_(std::move(told)) {}

void EndpointsWriter::Write(const std::vector<Member>& members) const {
  Endpoints endpoints;
  endpoints.control = told_.control;
  endpoints.pid = getpid();
  endpoints.run = folder_.name();
  endpoints.run_id = run_id_;
  endpoints.shm_dir = told_.shm_dir;
  endpoints.http["coordinator"] = told_.http;
  std::vector<ScrapeTarget> targets = {{"coordinator", "coordinator", told_.http}};
  for (const Member& member : members) {
    // A name that is taken gets its session's number, so that no member hides another.
    const bool taken = endpoints.http.contains(member.name);
    const std::string suffix = taken ? ".session-" + std::to_string(member.sequence) : "";
    const std::string service = member.name + suffix;
    endpoints.http[service] = member.http_endpoint;
    targets.push_back(
        {service, member.role == wire::Role::kLearner ? "learner" : "actor", member.http_endpoint});
  }
  WriteEndpoints(folder_.endpoints_json(), endpoints);
  WriteAtomically(folder_.path() + "/file_sd.json", FileSdText(endpoints.run, targets));
}

void EndpointsWriter::ClearTargets() const {
  WriteAtomically(folder_.path() + "/file_sd.json", FileSdText(folder_.name(), {}));
}

std::string FileSdText(const std::string& run, const std::vector<ScrapeTarget>& targets) {
  std::string text = "[";
  for (const ScrapeTarget& target : targets) {
    JsonObject labels, group;
    labels.Add("service", target.service).Add("job", target.job).Add("run", run);
    group.AddJson("targets", "[" + JsonQuoted(target.address) + "]")
        .AddJson("labels", labels.Text());
    text += (text.size() > 1 ? ",\n " : "\n ") + group.Text();
  }
  return text + "\n]\n";
}

Endpoints PreviousEndpoints(const RunFolder& folder) {
  try {
    return ReadEndpoints(folder.endpoints_json());
  } catch (const Error&) {
    return {};
  }
}

std::string ToldEndpoint(const std::string& wanted, const std::string& endpoint) {
  if (endpoint.starts_with(kTcp)) {
    return kTcp + Advertised("--advertise", wanted, endpoint.substr(kTcp.size()));
  }
  if (wanted.empty()) return endpoint;
  throw Error(ExitCode::kUsage, "--advertise " + wanted + " is for a --bind of tcp://, this is " +
                                    endpoint + ": give --bind tcp://host:port, too");
}

std::string ControlAddress(const std::string& bind, const RunFolder& folder,
                           const std::string& shm_dir, std::uint64_t run_id) {
  if (!bind.empty()) return bind;
  const std::string in_folder = folder.path() + "/control.sock";
  if (in_folder.size() <= kMaxSocketPathBytes) return "ipc://" + in_folder;
  EnsureShmDir(shm_dir);
  return "ipc://" + shm_dir + "/" + std::to_string(run_id) + ".sock";
}

}  // namespace tetrion::coordinator
