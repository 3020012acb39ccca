#include "tools/load/load.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "lib/core/address.h"
#include "lib/core/error.h"
#include "lib/core/file_limit.h"
#include "lib/core/log.h"
#include "lib/core/random.h"
#include "lib/run/options.h"
#include "lib/setup/member.h"

namespace tetrion {
namespace {

constexpr int kMaxSessions = 30'000;  // two places each in ZeroMQ's table of 65,535
// A member has a connection and a mailbox, and both twice while it reconnects.
constexpr std::uint64_t kFilesPerMember = 4;
constexpr std::uint64_t kOwnFiles = 64;
constexpr std::int64_t kRoundNs = 50 * kNanosPerMilli;
// A connection costs both ends some 100 us: members come in groups, so that a round stays short.
constexpr std::size_t kOpenedPerRound = 100;
constexpr std::int64_t kLineNs = kNanosPerSecond;
constexpr std::int64_t kGoodbyeNs = 20 * kNanosPerSecond;  // for all of them together

double Seconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

}  // namespace

std::optional<int> ParseLoadOptions(int argc, const char* const* argv, LoadOptions& options) {
  ServiceOptions parser(
      "tetrion-load", "",
      "Loads a coordinator with sessions of actors that play nothing. Prints a line of JSON each "
      "second; exit status 75 when sessions were fenced or none ever registered.");
  parser.Add("run-folder", &options.run_folder,
             "folder of the run; its endpoints.json says where the coordinator is");
  parser.Add("coordinator", &options.coordinator,
             "address of the coordinator instead, tcp://host:port or ipc:///path");
  AddCurveKey(parser, options.curve);
  AddCurveServer(parser, options.curve);
  parser.Add("sessions", &options.sessions, "members to play", 1, kMaxSessions);
  parser.Add("seconds", &options.seconds,
             "how long they stay; 0: until the run ends or a signal comes", 0, 86400, "s");
  parser.AddFlag("grants", &options.grants, "each session also takes a range of tokens");
  parser.Add("log-level", &options.log_level, "least severe lines on stderr",
             {"info", "warn", "error"});
  if (const std::optional<int> code = parser.Parse(argc, argv)) return code;
  if (options.run_folder.empty() == options.coordinator.empty()) {
    throw Error(ExitCode::kUsage,
                "say which coordinator: --run-folder runs/NAME or --coordinator tcp://host:port");
  }
  CheckEndpoint("--coordinator", options.coordinator, TcpUse::kConnect);
  CheckCurveOptions(options.curve);
  return std::nullopt;
}

Load::Load(const LoadOptions& options, const Clock& clock) : options_(options), clock_(clock) {
  RaiseFileLimit(kFilesPerMember * static_cast<std::uint64_t>(options.sessions) + kOwnFiles,
                 std::to_string(options.sessions) + " sessions");
  wire::SessionLink::Config link = LinkConfigOf({.run_folder = options.run_folder,
                                                 .coordinator = options.coordinator,
                                                 .curve = options.curve});
  link.context = std::make_shared<wire::SocketContext>(
      wire::SocketContext::Config{.max_sockets = 2 * options.sessions + 1});
  place_ = link.endpoint;
  const std::uint64_t first_process = (RandomBits() >> 2) | 1;
  for (int i = 0; i < options.sessions; ++i) {
    link.process = first_process + static_cast<std::uint64_t>(i);
    members_.emplace_back(
        LoadMember::Config{
            .name = "load-" + std::to_string(i), .grants = options.grants, .link = link},
        clock);
  }
}

void Load::Round() {
  opened_ = std::min(opened_ + kOpenedPerRound, members_.size());
  for (std::size_t i = 0; i < opened_; ++i) {
    LoadMember& member = members_[i];
    member.DoWork();
    if (member.epoch() > epoch_) {
      epoch_ = member.epoch();
      complete_ns_ = 0;
    }
  }
  const bool complete = std::all_of(members_.begin(), members_.end(),
                                    [&](const LoadMember& m) { return m.StandsIn(epoch_); });
  if (complete_ns_ == 0 && complete) complete_ns_ = clock_.NowNs();
}

bool Load::AllGone() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const LoadMember& m) { return m.gone(); });
}

void Load::Print(std::FILE* out, bool last) {
  const std::int64_t now_ns = clock_.NowNs();
  if (!last && now_ns < next_line_ns_) return;
  next_line_ns_ = now_ns + kLineNs;
  std::int64_t oldest_ns = 0;
  std::uint64_t registered = 0, in_epoch = 0, granted = 0, gone = 0, fenced = 0, reconnects = 0;
  for (const LoadMember& member : members_) {
    registered += member.registered() ? 1 : 0;
    in_epoch += member.StandsIn(epoch_) ? 1 : 0;
    granted += member.granted() ? 1 : 0;
    gone += member.gone() ? 1 : 0;
    fenced += static_cast<std::uint64_t>(member.fenced());
    reconnects += member.reconnects();
    if (!member.gone()) oldest_ns = std::max(oldest_ns, now_ns - member.last_answer_ns());
  }
  std::fprintf(out,
               "{\"time_s\": %.3f, \"registered\": %lu, \"epoch\": %lu, \"in_epoch\": %lu, "
               "\"complete_s\": %.3f, \"granted\": %lu, \"gone\": %lu, \"fenced\": %lu, "
               "\"reconnects\": %lu, \"oldest_answer_s\": %.3f}\n",
               Seconds(now_ns), registered, epoch_, in_epoch, Seconds(complete_ns_), granted, gone,
               fenced, reconnects, Seconds(oldest_ns));
  std::fflush(out);
}

int Load::Run(const std::atomic<bool>& drain, std::FILE* out) {
  std::int64_t end_ns = INT64_MAX;
  if (options_.seconds > 0) {
    end_ns = clock_.NowNs() + static_cast<std::int64_t>(options_.seconds * kNanosPerSecond);
  }
  for (bool leaving = false; !AllGone();) {
    const std::int64_t start_ns = clock_.NowNs();
    if (!leaving && (drain.load(std::memory_order_acquire) || start_ns >= end_ns)) {
      leaving = true;
      end_ns = start_ns + kGoodbyeNs;
      for (LoadMember& member : members_) member.Leave();
    } else if (leaving && start_ns >= end_ns) {
      break;
    }
    Round();
    Print(out, false);
    // At most half a core: the rest belongs to what is measured.
    const std::int64_t took_ns = clock_.NowNs() - start_ns;
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::max(took_ns, kRoundNs - took_ns)));
  }
  Print(out, true);
  const bool fenced = std::any_of(members_.begin(), members_.end(),
                                  [](const LoadMember& m) { return m.fenced() > 0; });
  if (epoch_ == 0) {
    const std::string address = place_().endpoint;
    log::error(
        "no session has registered with the coordinator at {}: see that it runs and is reached "
        "there{}",
        address.empty() ? options_.run_folder + " (no endpoints.json)" : address,
        options_.curve.key.empty()
            ? "; where it wants keys, give --curve-key and --curve-server"
            : "; that it allows our --curve-key, and that --curve-server is its own");
  }
  return fenced || epoch_ == 0 ? static_cast<int>(ExitCode::kTryAgain) : 0;
}

}  // namespace tetrion
