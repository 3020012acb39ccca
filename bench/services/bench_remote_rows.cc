#include <zmq.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/agent.h"
#include "lib/core/check.h"
#include "lib/core/clock.h"
#include "lib/core/log.h"
#include "lib/frame/row_layout.h"
#include "lib/metrics/registry.h"
#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"
#include "lib/weights/remote_weights.h"
#include "lib/weights/weights_slot.h"
#include "lib/wire/remote_path.h"
#include "services/actor/courier.h"
#include "services/learner/rows_agent.h"

// Rows a second from an actor's ring into the learner's ring over TCP, counted once the learner has
// acknowledged them, against plain ZeroMQ: a DEALER that sends messages of the same sizes to a
// ROUTER, which copies them once and answers each. Both keep as many bytes under way. Windows of
// ours and of the rival take turns. bench/services/remote_rows.py runs the two ends in processes of
// their own: bench_remote_rows learner ADDRESS, bench_remote_rows actor ROWS RIVAL [--quick].
namespace tetrion {
namespace {

constexpr std::uint64_t kRun = 7, kProcess = 5, kRingRows = 256, kBatchBytes = 64 * 1024;
constexpr std::int64_t kStartMs = 10'000;
constexpr std::uint8_t kPatterns = 8;  // rows that are filled at once, each with its number

// Tetris states of 64 lanes, as the default run has them.
RowLayout Layout() {
  return RowLayout({.record_bytes = 64, .lanes = 64, .has_mask = true});
}
RingSpec Spec(const RowLayout& layout) {
  return {.capacity = kRingRows, .record_bytes = layout.row_bytes, .spec_hash = layout.Hash()};
}
Region Anonymous(const RingSpec& spec) {
  return Region::CreateAnonymous(RegionKind::kRing, RingRegionBytes(spec), kRun, spec.spec_hash,
                                 "rows of the benchmark");
}
void Rethrow(std::exception_ptr error) {
  std::rethrow_exception(error);
}

// ZeroMQ by itself: a thread that answers every message with its number.
class PlainRouter {
 public:
  explicit PlainRouter(const std::string& address) {
    TETRION_CHECK(zmq_bind(socket_, address.c_str()) == 0, "the rival's address is free");
    char text[256];
    std::size_t size = sizeof(text);
    zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, text, &size);
    endpoint_ = text;
  }
  const std::string& endpoint() const { return endpoint_; }
  void Serve() {
    std::vector<char> peer(256), bytes(kBatchBytes);
    for (;;) {
      const int id = zmq_recv(socket_, peer.data(), peer.size(), 0);
      if (id < 0) return;
      const int size = zmq_recv(socket_, bytes.data(), bytes.size(), 0);
      if (size < 0) return;
      zmq_send(socket_, peer.data(), static_cast<std::size_t>(id), ZMQ_SNDMORE);
      zmq_send(socket_, &size, sizeof(size), 0);
    }
  }

 private:
  void* const context_ = zmq_ctx_new();
  void* const socket_ = zmq_socket(context_, ZMQ_ROUTER);
  std::string endpoint_;
};

class PlainDealer {
 public:
  // Sends messages of `bytes` bytes, at most kBatchBytes.
  PlainDealer(const std::string& address, std::uint64_t bytes) : bytes_(bytes, 1) {
    TETRION_CHECK(zmq_connect(socket_, address.c_str()) == 0, "the rival's address can be parsed");
  }
  // Bytes a second that were answered; `in_flight` bytes are under way.
  double Run(double seconds, std::uint64_t in_flight) {
    const Clock& clock = MonotonicClock::Get();
    const std::int64_t start_ns = clock.NowNs();
    std::uint64_t under_way = 0, answered = 0;
    while (clock.NowNs() - start_ns < static_cast<std::int64_t>(seconds * 1e9)) {
      for (; under_way + bytes_.size() <= in_flight; under_way += bytes_.size()) {
        zmq_send(socket_, bytes_.data(), bytes_.size(), 0);
      }
      answered += Answer(under_way);
    }
    const double rate =
        static_cast<double>(answered) / (static_cast<double>(clock.NowNs() - start_ns) * 1e-9);
    while (under_way > 0) Answer(under_way);
    return rate;
  }

 private:
  std::uint64_t Answer(std::uint64_t& under_way) {
    int size = 0;
    zmq_recv(socket_, &size, sizeof(size), 0);
    under_way -= bytes_.size();
    return static_cast<std::uint64_t>(size);
  }

  void* const context_ = zmq_ctx_new();
  void* const socket_ = zmq_socket(context_, ZMQ_DEALER);
  const std::vector<char> bytes_;
};

// As the actor fills it: one of kPatterns bytes throughout.
bool IsOneRow(const std::vector<std::byte>& row) {
  return row.front() < std::byte{kPatterns} &&
         std::memcmp(row.data(), row.data() + 1, row.size() - 1) == 0;
}

// The learner's end: the rows thread, and a thread that takes rows as ingest does, with one copy.
int ServeLearner(const std::string& address) {
  const RowLayout layout = Layout();
  auto socket = std::make_unique<wire::RowsServer>(
      wire::RowsServer::Config{.endpoint = address, .run_id = kRun});
  PlainRouter router(address);
  std::printf("%s %s\n", socket->endpoint().c_str(), router.endpoint().c_str());
  std::fflush(stdout);
  std::vector<std::byte> slot(WeightsSlotBytes(64) + 128);
  auto* aligned = reinterpret_cast<std::byte*>(
      (reinterpret_cast<std::uintptr_t>(slot.data()) + 127) / 128 * 128);
  const WeightsSlotWriter publisher(aligned, 64);
  learner::RemoteBoard board;
  BellBlock words{};
  learner::RowsAgent rows({.run_id = kRun,
                           .row_bytes = layout.row_bytes,
                           .spec_hash = layout.Hash(),
                           .ring_rows = kRingRows},
                          {.socket = std::move(socket),
                           .weights = WeightsSlotReader(aligned, 64),
                           .ingest = Bell(&words)},
                          board);
  AgentRunner runner(rows, Rethrow);
  runner.Start();
  std::thread rival([&router] { router.Serve(); });
  const std::string path = wire::RemoteRingPath(kProcess, 0);
  board.Expect(path);
  std::shared_ptr<learner::RemoteStream> stream;
  Bell bell(&words);
  while (!(stream = board.Take(path))) (void)bell.Wait(bell.Arm(), 10 * kNanosPerMilli);
  RingConsumer ring = RingConsumer::Beside(stream->producer);
  std::vector<std::byte> copy(layout.row_bytes);
  for (;;) {
    const RingPeek peek = ring.Peek();
    if (peek.status != RingStatus::kOk) {
      (void)bell.Wait(bell.Arm(), kNanosPerMilli);
      continue;
    }
    for (std::uint32_t i = 0; i < peek.count; ++i) {
      std::memcpy(copy.data(), peek.records + i * layout.row_bytes, layout.row_bytes);
    }
    TETRION_CHECK(IsOneRow(copy), "a row arrives as the actor filled it");
    ring.Release(peek.count);
  }
}

// A worker that makes rows in no time, and the courier that carries them.
class Actor {
 public:
  explicit Actor(const std::string& learner)
      : layout_(Layout()),
        producer_(RingProducer::Create(Anonymous(Spec(layout_)), Spec(layout_))),
        courier_({.run_id = kRun, .process = kProcess, .delivery = {.weights_bytes = 64}}, inbox_,
                 metrics_) {
    courier_.Add({{.path = wire::RemoteRingPath(kProcess, 0),
                   .spec_hash = layout_.Hash(),
                   .batch_bytes = kBatchBytes},
                  RingConsumer::Beside(producer_),
                  MonotonicClock::Get()});
    courier_.SetLearner(learner.substr(learner.find("//") + 2));
    runner_.Start();
    const Deadline deadline = Deadline::AfterMs(kStartMs);
    while (producer_.Released() == 0) {
      TETRION_CHECK(!deadline.Passed(), "the learner takes rows");
      Fill();
    }
  }
  ~Actor() { runner_.RequestStop(); }
  double Run(double seconds) {
    const Clock& clock = MonotonicClock::Get();
    const std::uint64_t before = producer_.Released();
    const std::int64_t start_ns = clock.NowNs();
    while (clock.NowNs() - start_ns < static_cast<std::int64_t>(seconds * 1e9)) Fill();
    return static_cast<double>((producer_.Released() - before) * layout_.row_bytes) /
           (static_cast<double>(clock.NowNs() - start_ns) * 1e-9);
  }
  std::uint64_t row_bytes() const { return layout_.row_bytes; }

 private:
  void Fill() {
    for (int row = 0; row < kPatterns; ++row) {
      RingProducer::Loan loan = producer_.Claim();
      if (!loan.ok()) break;
      std::memset(loan.record(), row, layout_.row_bytes);
      loan.Complete();
    }
    producer_.Publish();
    (void)producer_.WaitForSpace(kNanosPerMilli);
  }

  const RowLayout layout_;
  MetricsRegistry metrics_;
  WeightsInbox inbox_;
  RingProducer producer_;
  actor::Courier courier_;
  AgentRunner runner_{courier_, Rethrow};
};

std::string Range(std::vector<double> values, const char* format) {
  std::sort(values.begin(), values.end());
  char text[128];
  std::snprintf(text, sizeof(text), format, values[values.size() / 2], values.front(),
                values.back());
  return text;
}

void RunActor(const std::string& learner, const std::string& rival, const std::string& where,
              double seconds) {
  Actor actor(learner);
  PlainDealer dealer(rival, kBatchBytes / actor.row_bytes() * actor.row_bytes());  // whole rows
  const std::uint64_t in_flight = kRingRows * actor.row_bytes();
  std::vector<double> ours, theirs, ratio;
  for (int window = 0; window <= 5; ++window) {
    const double rows = actor.Run(seconds), plain = dealer.Run(seconds, in_flight);
    if (window == 0) continue;  // warms up
    ours.push_back(rows);
    theirs.push_back(plain);
    ratio.push_back(rows / plain);
  }
  constexpr const char* kRate = R"("median":%.4g,"min":%.4g,"max":%.4g)";
  std::printf(
      "{\"what\":\"remote rows of %llu B, %s\",\"unit\":\"B/s\",\"ours\":{%s},"
      "\"rival\":{\"name\":\"plain ZeroMQ\",%s},\"ratio\":{%s}}\n",
      static_cast<unsigned long long>(actor.row_bytes()), where.c_str(), Range(ours, kRate).c_str(),
      Range(theirs, kRate).c_str(), Range(ratio, kRate).c_str());
}

}  // namespace
}  // namespace tetrion

int main(int argc, char** argv) {
  tetrion::SetUpLogging({.service = "bench", .level = "error"});
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "learner") return tetrion::ServeLearner(words[1]);
  if (words.size() >= 4 && words[0] == "actor") {
    const bool quick = words.back() == "--quick";
    tetrion::RunActor(words[1], words[2], words[3], quick ? 0.5 : 1.5);
    std::fflush(stdout);
    std::_Exit(0);  // ZeroMQ's threads are left as they are
  }
  std::puts("skipped: bench/services/remote_rows.py runs both ends");
  return 0;
}
