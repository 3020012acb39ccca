// Rows from one process to another: the ring against iceoryx and libzmq's ipc, rows a second and
// round trips, in turns within one run. Prints one JSON line a figure, and one plain line when the
// build found no iceoryx. --quick: shorter windows.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "bench/shm/links.h"
#include "bench/shm/windows.h"
#ifdef TETRION_BENCH_ICEORYX
#include "bench/shm/iceoryx_link.h"
#endif

namespace tetrion::bench {
namespace {

constexpr int kWindows = 5;
// Rows that wait at most, as in iceoryx's longest queue: a longer ring has its lines further away.
constexpr std::uint64_t kRingRows = 256;

// One contestant's windows.
struct Column {
  std::vector<double> rate, p50, p99;
  void Add(double rows, const RoundTrip& trip) {
    rate.push_back(rows);
    p50.push_back(trip.p50_ns);
    p99.push_back(trip.p99_ns);
  }
};

struct Targets {
  std::string rate, p50;
};

void Print(std::size_t bytes, const Column& ours, const std::string& name, const Column& rival,
           const Targets& targets) {
  const std::string what = "two processes, " + std::to_string(bytes) + " B rows: ";
  PrintFigure(what + "rate", "rows/s", ours.rate, name, rival.rate, targets.rate);
  PrintFigure(what + "round trip, p50", "ns", ours.p50, name, rival.p50, targets.p50);
  PrintFigure(what + "round trip, p99", "ns", ours.p99, name, rival.p99, "");
}

template <typename Link, typename... Args>
void Window(Column& column, std::int64_t length_ns, const Args&... args) {
  double rate = 0;
  {
    Link link(args...);
    rate = RateWindow(link, Peer::kProcess, length_ns);
  }
  Link there(args...), back(args...);
  column.Add(rate, RoundTripWindow(there, back, Peer::kProcess, length_ns));
}

template <std::size_t kBytes>
void OurWindow(Column& column, std::int64_t length_ns) {
  double rate = 0;
  {
    OurLink<kBytes> link(kMaxBatch, kRingRows);
    rate = RateWindow(link, Peer::kProcess, length_ns);
  }
  OurLink<kBytes> there(1, kRingRows), back(1, kRingRows);
  column.Add(rate, RoundTripWindow(there, back, Peer::kProcess, length_ns));
}

#ifdef TETRION_BENCH_ICEORYX
// In a process of its own: a runtime of iceoryx does not survive a fork.
void IceoryxWindow(Column& column, std::int64_t length_ns, std::size_t bytes) {
  struct Result {
    double rate;
    RoundTrip trip;
  };
  auto* result = MapShared<Result>();
  const pid_t child = ForkChild();
  if (child == 0) {
    {
      IceoryxLink link(bytes);
      result->rate = RateWindow(link, Peer::kProcess, length_ns);
    }
    // The peers of the round trips must not inherit the runtime of the rate's sender either.
    std::exit(0);
  }
  Await(child);
  const pid_t second = ForkChild();
  if (second == 0) {
    IceoryxLink there(bytes), back(bytes);
    result->trip = RoundTripWindow(there, back, Peer::kProcess, length_ns);
    std::exit(0);
  }
  Await(second);
  column.Add(result->rate, result->trip);
  munmap(result, sizeof *result);
}
#endif

template <std::size_t kBytes>
void BenchProcesses(std::int64_t length_ns, bool iceoryx) {
  Column ours, zmq, rival;
  for (int i = 0; i < kWindows; ++i) {
    OurWindow<kBytes>(ours, length_ns);
    Window<ZmqLink>(zmq, length_ns, kBytes);
#ifdef TETRION_BENCH_ICEORYX
    if (iceoryx) IceoryxWindow(rival, length_ns, kBytes);
#endif
  }
  if (iceoryx) Print(kBytes, ours, "iceoryx 2.0.3", rival, {.rate = "", .p50 = "<= 0.167x"});
  Print(kBytes, ours, "libzmq ipc", zmq, {.rate = ">= 25x", .p50 = ""});
}

int Main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const std::int64_t length_ns = quick ? kNanosPerSecond / 10 : kNanosPerSecond / 2;
  bool iceoryx = false;
#ifdef TETRION_BENCH_ICEORYX
  const std::optional<RouDi> broker = RouDi::Start();
  iceoryx = broker.has_value();
  if (!iceoryx)
    std::printf("iceoryx left out: iox-roudi did not start (is another one running?)\n");
#else
  std::printf("iceoryx left out: apt-get install libiceoryx-posh-dev iceoryx, then build again\n");
#endif
  std::fflush(stdout);  // before any fork
  BenchProcesses<64>(length_ns, iceoryx);
  BenchProcesses<1440>(length_ns, iceoryx);
  return 0;
}

}  // namespace
}  // namespace tetrion::bench

int main(int argc, char** argv) {
  return tetrion::bench::Main(argc, argv);
}
