// What a device does of a replay's work: environments that write rows in place, gathers, pixels.
// Prints one JSON line a figure. Beside each stands a plain copy on the device in the same run, by
// its bytes a second: the share of it is the share of the roofline that memory sets.
//   bench_device [--quick]   shorter windows
//   bench_device --smoke     small sizes: shows that it runs, gives no figure
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/resident_loop.h"
#include "bench/envs/windows.h"
#include "lib/replay/pixel_gather.h"

namespace tetrion::bench {
namespace {

constexpr int kRows = 64;  // of a window

struct Settings {
  Windows windows;
  bool smoke = false;
  std::vector<int> lanes = {4096, 16384, 65536};
  std::vector<int> windows_of_a_batch = {16, 1024};
  std::size_t copy_bytes = std::size_t{1} << 30;
  int repeats = 32;  // between two waits of the host
};

// What is measured: `enqueue` enqueues a piece of work, `wait` waits for all pieces, and `done`,
// outside the windows, returns the units that were done since it was asked last.
struct Work {
  std::function<void()> enqueue, wait;
  std::function<double()> done;
};

// Work whose pieces have `units` each.
Work PiecesOf(double units, const std::function<void()>& enqueue,
              const std::function<void()>& wait) {
  const auto pieces = std::make_shared<double>(0);
  return {.enqueue =
              [=] {
                enqueue();
                ++*pieces;
              },
          .wait = wait,
          .done = [=] { return units * std::exchange(*pieces, 0); }};
}

// Units a second; settings.repeats pieces lie between two waits.
void Report(const Settings& settings, const std::string& what, const std::string& unit,
            const Work& work, std::optional<double> bytes_a_unit, double copied_bytes_a_s,
            const std::string& target = "") {
  const auto turn = [&] {
    for (int i = 0; i < settings.repeats; ++i) work.enqueue();
    work.wait();
    return 1;
  };
  turn();  // what is made once
  const double first = work.done();
  if (settings.smoke) {
    std::cout << what << ": " << first << " " << unit.substr(0, unit.find('/'))
              << ", not measured\n";
    return;
  }
  Rates rates;
  for (int i = 0; i < settings.windows.count; ++i) {
    double turns = 0;
    const double turns_a_s = Window(settings.windows, [&] {
      ++turns;
      return turn();
    });
    rates.push_back(turns_a_s * work.done() / turns);
  }
  const Spread ours(rates);
  std::cout << R"({"what": ")" << what << R"(", "unit": ")" << unit << R"(", "ours": {)"
            << ours.Json() << R"(}, "rival": )";
  if (bytes_a_unit) {
    const double most = copied_bytes_a_s / *bytes_a_unit;
    std::cout << R"({"name": "a copy of as many bytes", "median": )" << most << R"(, "min": )"
              << most << R"(, "max": )" << most << R"(}, "ratio": {"median": )"
              << ours.median / most << R"(, "min": )" << ours.min / most << R"(, "max": )"
              << ours.max / most << R"(}, "target": ")" << target << R"("})" << std::endl;
  } else {
    std::cout << R"(null, "ratio": null, "target": ""})" << std::endl;
  }
}

// Bytes a second that a copy reads and writes.
double CopiedBytes(const cuda::Device& device, const Settings& settings) {
  cuda::Stream stream(device, "copies");
  const std::size_t bytes = std::min(settings.copy_bytes, device.Memory().free_bytes / 4);
  const cuda::DeviceBuffer from(device, bytes, "a copy's source");
  const cuda::DeviceBuffer to(device, bytes, "a copy's target");
  cuda::SetBytes(from.data<std::byte>(), 1, bytes, stream);
  const double rate = Window(settings.windows, [&] {
    cuda::CopyOnDevice(to.data<std::byte>(), from.data<std::byte>(), bytes,
                       cuda::CopyPurpose::kSetUp, stream);
    stream.Synchronize();
    return 2.0 * static_cast<double>(bytes);
  });
  if (!settings.smoke) {
    std::cout << R"({"what": "copy on the device", "unit": "bytes/s", "ours": {"median": )" << rate
              << R"(, "min": )" << rate << R"(, "max": )" << rate
              << R"(}, "rival": null, "ratio": null, "target": ""})" << std::endl;
  }
  return rate;
}

// A step reads and writes a state of 64 bytes, and writes its row.
double StepBytes(const RowSpec& row) {
  return 2.0 * 64 + row.record_bytes + 4 + 4 + (row.has_mask ? 8 : 0) + 4 + 1 + 4 + 4;
}

void Steps(const cuda::Device& device, const Settings& settings, double copied) {
  struct Kind {
    const char *name, *env, *record, *network;
    int drained_a_lane = 1;
  };
  for (const Kind& kind :
       {Kind{"tetris, rules only", "tetris", "", ""},
        Kind{"tetris, planes", "tetris", kPlanesRecord, ""},
        Kind{"tetris, packed2", "tetris", kPacked2Record, ""},
        Kind{"tetris, packed2, random policy", "tetris", kPacked2Record, "random"},
        Kind{"cartpole, mlp", "cartpole", "", "mlp", 4}}) {
    for (const int lanes : settings.lanes) {
      ResidentLoop loop(device, {.env = kind.env,
                                 .record = kind.record,
                                 .network = kind.network,
                                 .lanes = lanes,
                                 .capacity_rows = 4 * kChunkRows,
                                 .drained_a_lane = kind.drained_a_lane});
      DeviceReplay& replay = loop.replay();
      const auto one = [&] { loop.Chunk(); };
      const auto read = [&] {
        loop.Chunk();
        replay.Read();
      };
      const auto wait = [&] { replay.Synchronize(); };
      const std::string what = std::string(kind.name) + ", " + std::to_string(lanes) + " lanes";
      Report(settings, what, "steps/s", {one, wait, [&] { return loop.TakeSteps(); }},
             StepBytes(replay.rows.layout().spec), copied);
      if (kind.record != std::string(kPacked2Record) || kind.network[0] == '\0') continue;
      Report(settings, what + ", a learner reading", "laps/s",
             PiecesOf(1.0 * kChunkRows / (4 * kChunkRows), read, wait), std::nullopt, copied);
    }
  }
}

// Windows of one lane each, out of rows of pictures.
void Gathers(const cuda::Device& device, const Settings& settings, double copied) {
  const int lanes = settings.lanes.front(), capacity = 4 * kRows;
  cuda::Stream writer(device, "writer"), reader(device, "reader");
  ReplayGate gate({.shards = 1, .capacity_rows = capacity, .commit_stride = kChunkRows},
                  std::make_unique<UniformSelector>(
                      UniformSelector::Config{.shards = 1, .window_rows = kRows, .lanes = lanes}),
                  Limiter::Unlimited());
  DeviceRows rows(device,
                  {.record_bytes = PixelGather::kRecordBytes,
                   .lanes = static_cast<std::uint32_t>(lanes),
                   .has_mask = false},
                  1, capacity, writer, reader);
  const RowSlots slots = rows.Slots(0);
  cuda::SetBytes(slots.record, 0x1b,
                 std::size_t{PixelGather::kRecordBytes} * slots.lanes * slots.capacity_rows,
                 writer);
  for (int row = 0; row < capacity; row += kChunkRows) {
    gate.Commit(gate.Acquire(0, kChunkRows, 0), rows.Written());
  }
  PixelGather by_table(rows, UnpackImpl::kLut), by_kernel(rows, UnpackImpl::kKernel);
  for (const int windows : settings.windows_of_a_batch) {
    const std::size_t frames = std::size_t{kRows} * static_cast<std::size_t>(windows);
    const cuda::DeviceBuffer records(device, frames * PixelGather::kRecordBytes, "records");
    const cuda::DeviceBuffer pixels(device, frames * PixelGather::kPixels * 2, "pixels");
    const auto gather = [&](const auto& into) {
      return [&gate, &rows, windows, into] {
        ReadLease lease = gate.OpenLease(windows, kRows, kNanosPerSecond);
        into(lease);
        lease.CloseAfter(rows.LastRead());
      };
    };
    const auto wait = [&] { reader.Synchronize(); };
    const std::string what = std::to_string(windows) + "x" + std::to_string(kRows);
    const auto packed = static_cast<double>(PixelGather::kRecordBytes);
    const double unpacked = packed + 2.0 * PixelGather::kPixels;
    const auto report = [&](const std::string& name, double bytes, const auto& into,
                            const std::string& target = "") {
      Report(settings, name, "frames/s", PiecesOf(static_cast<double>(frames), gather(into), wait),
             bytes, copied, target);
    };
    report(
        "gather " + what + " of packed2", 2 * packed,
        [&](const ReadLease& lease) {
          rows.GatherOnDevice(lease, 0, windows, {.record = records.data<std::byte>()});
        },
        windows == 1024 ? ">= 0.8x" : "");
    report("gather and unpack " + what + " to bf16, table", unpacked, [&](const ReadLease& lease) {
      by_table.Gather(lease, 0, windows, pixels.data<std::uint16_t>());
    });
    report("gather and unpack " + what + " to bf16, one kernel", unpacked,
           [&](const ReadLease& lease) {
             by_kernel.Gather(lease, 0, windows, pixels.data<std::uint16_t>());
           });
  }
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (cuda::Device::Count() == 0) {
    std::cout << "no CUDA device: not measured\n";
    return 0;
  }
  Settings settings;
  if (mode == "--quick") settings.windows.length_ns = kNanosPerSecond / 10;
  if (mode == "--smoke") {
    settings = {.windows = {.count = 1, .length_ns = 1},
                .smoke = true,
                .lanes = {8},
                .windows_of_a_batch = {2},
                .copy_bytes = 4096,
                .repeats = 1};
  }
  const cuda::Device device(0);
  const double copied = CopiedBytes(device, settings);
  Steps(device, settings, copied);
  Gathers(device, settings, copied);
  return 0;
}

}  // namespace
}  // namespace tetrion::bench

int main(int argc, char** argv) {
  return tetrion::bench::Main(argc, argv);
}
