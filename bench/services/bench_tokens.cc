#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/agent.h"
#include "lib/core/check.h"
#include "lib/core/clock.h"
#include "lib/core/log.h"
#include "lib/frame/token.h"
#include "lib/metrics/registry.h"
#include "lib/setup/run_setup.h"
#include "lib/wire/socket.h"
#include "services/coordinator/control_agent.h"
#include "services/coordinator/store.h"
#include "services/coordinator/store_agent.h"

// Row 6: episodes accounted exactly once per second through the real control agent and store,
// against a bare ROUTER/DEALER echo of messages of the same sizes. One client thread on each side;
// windows of ours and of the echo take turns. Usage: bench_tokens [--quick].
namespace tetrion {
namespace {

constexpr std::uint32_t kRangesPerGrant = 64;
// As an actor, which asks for no more tokens while more reports than these wait.
constexpr std::size_t kBatchesInFlight = kMaxUnackedBatches;
// Together with the batches in flight and one request less than MaxTokensHeld.
constexpr std::size_t kRangesAhead = 2 * kRangesPerGrant;
constexpr std::uint32_t kLanes = 8;
constexpr std::uint64_t kBatchReports = wire::kMaxReports;
constexpr std::int64_t kWaitMs = 10'000;

wire::Message Wait(wire::ControlClient& client) {
  wire::ReceiveResult result = client.Receive(kWaitMs);
  TETRION_CHECK(result.status == wire::ReceiveStatus::kMessage, "the coordinator answers in time");
  return std::move(result.message);
}

void Send(wire::ControlClient& client, const wire::Message& message) {
  const Deadline deadline = Deadline::AfterMs(kWaitMs);
  while (client.Send(message) == wire::SendStatus::kFull) {
    TETRION_CHECK(!deadline.Passed(), "the coordinator reads");
    client.Poll(1);
  }
}

// An actor that plays episodes in no time: asks for ranges ahead and reports them in full batches.
class TokenClient {
 public:
  explicit TokenClient(const std::string& endpoint)
      : client_({.endpoint = endpoint, .identity = {.process = 2}}) {
    Send(client_, wire::Register{.name = "bench", .workers = 1});
    for (;;) {
      const wire::Message message = Wait(client_);
      if (const auto* registered = std::get_if<wire::Registered>(&message)) {
        session_ = registered->session;
        client_.JoinRun(registered->run_id);
        break;
      }
    }
    AskForRanges();
  }

  // Episodes per second over one window.
  double Run(double seconds) {
    const Clock& clock = MonotonicClock::Get();
    const std::uint64_t before = accounted_;
    const std::int64_t start_ns = clock.NowNs();
    std::int64_t beat_ns = start_ns;
    while (clock.NowNs() - start_ns < static_cast<std::int64_t>(seconds * 1e9)) {
      Fill();
      Take(Wait(client_));
      if (clock.NowNs() - beat_ns > kNanosPerSecond) {
        beat_ns = clock.NowNs();
        Send(client_, wire::Heartbeat{.session = session_});
      }
    }
    const auto span_s = static_cast<double>(clock.NowNs() - start_ns) * 1e-9;
    const auto rate = static_cast<double>(accounted_ - before) / span_s;
    while (in_flight_ > 0) Take(Wait(client_));
    return rate;
  }
  std::uint64_t accounted() const { return accounted_; }

 private:
  void AskForRanges() {
    asked_ = true;
    Send(client_, wire::GrantRequest{session_, ++request_, kRangesPerGrant});
  }
  void Fill() {
    while (in_flight_ < kBatchesInFlight && ranges_.size() * wire::kRangeTokens >= kBatchReports) {
      wire::ReportBatch batch{session_, ++batch_, {}, 0};
      batch.episodes.reserve(kBatchReports);
      while (batch.episodes.size() < kBatchReports) {
        const wire::GrantedRange& range = ranges_.front();
        for (std::uint32_t i = 0; i < range.count; ++i) {
          // As CartPole's: a reward of 1 a step.
          batch.episodes.push_back({.token_id = range.first_id + i,
                                    .attempt = range.attempt,
                                    .length_steps = i,
                                    .episode_return = static_cast<float>(i),
                                    .lane = static_cast<std::uint16_t>(i % kLanes)});
        }
        ranges_.pop_front();
      }
      Send(client_, batch);
      ++in_flight_;
    }
    if (!asked_ && ranges_.size() < kRangesAhead) AskForRanges();
  }
  void Take(const wire::Message& message) {
    if (const auto* grant = std::get_if<wire::Grant>(&message)) {
      asked_ = false;
      ranges_.insert(ranges_.end(), grant->ranges.begin(), grant->ranges.end());
    } else if (const auto* ack = std::get_if<wire::ReportAck>(&message)) {
      --in_flight_;
      accounted_ += ack->accepted;
      TETRION_CHECK(ack->accepted == kBatchReports, "every episode is accounted once");
    }
  }

  wire::ControlClient client_;
  std::uint64_t session_ = 0, request_ = 0, batch_ = 0, accounted_ = 0;
  std::size_t in_flight_ = 0;
  bool asked_ = false;
  std::deque<wire::GrantedRange> ranges_;
};

// The rival: the same sockets and sizes with nothing between them. A report-sized message goes, a
// ReportAck comes back; the rate is in reports' worth of episodes, as if each were accounted.
class EchoAgent final : public Agent {
 public:
  std::string name() const override { return "echo"; }
  int DoWork() override {
    server_.Poll(50);
    int work = 0;
    while (const auto received = server_.Receive()) {
      static_cast<void>(server_.Send(received->peer, wire::ReportAck{1, 1, 0, 0, 0}));
      ++work;
    }
    return work;
  }
  const std::string& endpoint() const { return server_.endpoint(); }

 private:
  wire::ControlServer server_{"tcp://127.0.0.1:0"};
};

class EchoClient {
 public:
  explicit EchoClient(const std::string& endpoint)
      : client_({.endpoint = endpoint, .identity = {.process = 2}}) {
    batch_.episodes.resize(kBatchReports);
  }
  double Run(double seconds) {
    const Clock& clock = MonotonicClock::Get();
    const std::int64_t start_ns = clock.NowNs();
    std::uint64_t echoed = 0;
    while (clock.NowNs() - start_ns < static_cast<std::int64_t>(seconds * 1e9)) {
      for (; in_flight_ < kBatchesInFlight; ++in_flight_) Send(client_, batch_);
      static_cast<void>(Wait(client_));
      --in_flight_;
      ++echoed;
    }
    const auto span_s = static_cast<double>(clock.NowNs() - start_ns) * 1e-9;
    for (; in_flight_ > 0; --in_flight_) static_cast<void>(Wait(client_));
    return static_cast<double>(echoed * kBatchReports) / span_s;
  }

 private:
  wire::ControlClient client_;
  wire::ReportBatch batch_;
  std::size_t in_flight_ = 0;
};

struct Figures {
  std::vector<double> values;
  std::string Json(const char* format) {
    std::sort(values.begin(), values.end());
    char text[128];
    std::snprintf(text, sizeof(text), format, values[values.size() / 2], values.front(),
                  values.back());
    return text;
  }
};

void Bench(const std::string& folder, int windows, double seconds) {
  coordinator::ControlConfig config;
  config.run = "bench";
  config.run_folder = folder;
  config.run_config.env = "cartpole";
  Resolve(config.run_config);
  const Clock& clock = MonotonicClock::Get();
  coordinator::Store store(folder + "/tetrion.db");
  const coordinator::StoredRun stored = store.Load(1);
  coordinator::StoreAgent store_agent(store, clock);
  MetricsRegistry registry;
  coordinator::ControlMetrics metrics(registry, "bench");
  coordinator::ControlAgent control(config, stored, store_agent, metrics, clock);
  EchoAgent echo;
  const auto on_error = [](std::exception_ptr error) { std::rethrow_exception(error); };
  AgentRunner store_runner(store_agent, on_error), control_runner(control, on_error),
      echo_runner(echo, on_error);
  store_runner.Start();
  control_runner.Start();
  echo_runner.Start();
  TokenClient tokens(control.endpoint());
  EchoClient echoes(echo.endpoint());
  tokens.Run(seconds / 2);
  echoes.Run(seconds / 2);
  Figures ours, rival, ratio;
  for (int window = 0; window < windows; ++window) {
    ours.values.push_back(tokens.Run(seconds));
    rival.values.push_back(echoes.Run(seconds));
    ratio.values.push_back(ours.values.back() / rival.values.back());
  }
  control_runner.RequestStop();
  control_runner.Join();
  store_runner.RequestStop();
  store_runner.Join();
  // What the client was told is what the store holds.
  coordinator::Store again(folder + "/tetrion.db");
  TETRION_CHECK(again.Load(1).counts.tokens.done == tokens.accounted(),
                "the store has every acknowledged episode");
  constexpr const char* kWhat = "tokens accounted, grants of 256";
  const std::string accounted = ours.Json(R"({"median":%.0f,"min":%.0f,"max":%.0f})");
  std::printf(
      "{\"what\":\"%s\",\"unit\":\"episodes/s\",\"ours\":%s,\"rival\":null,\"ratio\":null,"
      "\"target\":\">= 1M\"}\n",
      kWhat, accounted.c_str());
  std::printf(
      "{\"what\":\"%s\",\"unit\":\"episodes/s\",\"ours\":%s,\"rival\":%s,\"ratio\":%s,"
      "\"target\":\">= 0.7x\"}\n",
      kWhat, accounted.c_str(),
      rival.Json(R"({"name":"bare ROUTER/DEALER echo","median":%.0f,"min":%.0f,"max":%.0f})")
          .c_str(),
      ratio.Json(R"({"median":%.3f,"min":%.3f,"max":%.3f})").c_str());
}

}  // namespace
}  // namespace tetrion

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string(argv[1]) == "--quick";
  tetrion::SetUpLogging({.service = "bench", .level = "error"});
  std::string folder = (std::filesystem::temp_directory_path() / "tetrion-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  tetrion::Bench(folder, 5, quick ? 0.5 : 1.5);
  std::filesystem::remove_all(folder);
  return 0;
}
