// The ring against boost::lockfree::spsc_queue and a bare pair of cache lines between two threads:
// records a second and round trips, in turns within one run. Prints one JSON line a figure.
// --quick: shorter windows.
#include <cstring>

#include "bench/shm/links.h"
#include "bench/shm/windows.h"

namespace tetrion::bench {
namespace {

constexpr int kWindows = 5;

void BenchRate(std::uint32_t batch, const std::string& target, std::int64_t length_ns) {
  std::vector<double> ours, boost;
  for (int i = 0; i < kWindows; ++i) {
    OurLink<64> our_link(batch);
    ours.push_back(RateWindow(our_link, Peer::kThread, length_ns));
    BoostLink boost_link(batch);
    boost.push_back(RateWindow(boost_link, Peer::kThread, length_ns));
  }
  PrintFigure("ring: 64 B records, batch " + std::to_string(batch), "records/s", ours,
              "boost::lockfree::spsc_queue", boost, target);
}

void BenchRoundTrip(std::int64_t length_ns) {
  std::vector<double> ours_p50, ours_p99, boost_p50, boost_p99, raw_p50, raw_p99;
  for (int i = 0; i < kWindows; ++i) {
    OurLink<64> our_there(1), our_back(1);
    const RoundTrip ours = RoundTripWindow(our_there, our_back, Peer::kThread, length_ns);
    BoostLink boost_there(1), boost_back(1);
    const RoundTrip boost = RoundTripWindow(boost_there, boost_back, Peer::kThread, length_ns);
    RawLink raw_there, raw_back;
    const RoundTrip raw = RoundTripWindow(raw_there, raw_back, Peer::kThread, length_ns);
    ours_p50.push_back(ours.p50_ns), ours_p99.push_back(ours.p99_ns);
    boost_p50.push_back(boost.p50_ns), boost_p99.push_back(boost.p99_ns);
    raw_p50.push_back(raw.p50_ns), raw_p99.push_back(raw.p99_ns);
  }
  const std::string what = "ring: round trip of a 64 B record";
  const std::string queue = "boost::lockfree::spsc_queue";
  PrintFigure(what + ", p50", "ns", ours_p50, queue, boost_p50, "<= 0.75x");
  PrintFigure(what + ", p99", "ns", ours_p99, queue, boost_p99, "");
  PrintFigure(what + ", p50", "ns", ours_p50, "raw two-line ping-pong", raw_p50, "<= 1.1x");
  PrintFigure(what + ", p99", "ns", ours_p99, "raw two-line ping-pong", raw_p99, "");
}

int Main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const std::int64_t length_ns = quick ? kNanosPerSecond / 10 : kNanosPerSecond / 2;
  BenchRate(1, "", length_ns);
  BenchRate(kMaxBatch, ">= 2x", length_ns);
  BenchRoundTrip(length_ns);
  return 0;
}

}  // namespace
}  // namespace tetrion::bench

int main(int argc, char** argv) {
  return tetrion::bench::Main(argc, argv);
}
