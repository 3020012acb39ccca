#include "lib/replay/latent_rows.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "lib/replay/gate.h"
#include "tests/lib/replay/device_memory.h"
#include "tests/lib/replay/scripted_selector.h"

namespace tetrion {
namespace {

using testing::DeviceMemory;

constexpr RowSpec kRow = {.record_bytes = 8, .lanes = 3, .has_mask = false};
constexpr int kCapacity = 16, kStride = 4, kRows = 6;

// Latents of [rows, lanes] on the host.
struct HostLatents {
  HostLatents(const LatentSpec& spec, std::size_t cells)
      : deter(cells * spec.deter), stoch(cells * spec.stoch), valid(cells, 9) {
    for (std::size_t i = 0; i < deter.size(); ++i) deter[i] = static_cast<std::uint16_t>(i * 7 + 1);
    for (std::size_t i = 0; i < stoch.size(); ++i) stoch[i] = static_cast<std::uint8_t>(i * 5 + 2);
  }
  std::vector<std::uint16_t> deter;
  std::vector<std::uint8_t> stoch, valid;
};

// A full ring of two shards whose rows have no latents yet, and windows that wrap in it.
class LatentReplay {
 public:
  explicit LatentReplay(const LatentSpec& spec) : spec_(spec), memory_(kRow, 2, kCapacity, spec) {
    auto selector = std::make_unique<testing::ScriptedSelector>();
    selector_ = selector.get();
    gate_ = std::make_unique<ReplayGate>(
        GateConfig{.shards = 2, .capacity_rows = kCapacity, .commit_stride = kStride},
        std::move(selector), Limiter::Unlimited());
    for (int shard = 0; shard < 2; ++shard) Push(shard, kCapacity + kStride);
    LeaseFrom(12);
  }

  // All lanes of shard 1 from this row on, and one lane of shard 0.
  void LeaseFrom(std::uint64_t row) {
    selector_->windows = {{.shard = 1, .start = row}, {.shard = 0, .start = 9, .lane = 2}};
    lease_ = gate_->OpenLease(2, kRows, 0);
  }
  void Push(int shard, int count) {
    const std::vector<std::byte> rows(static_cast<std::size_t>(count) *
                                      memory_.rows().layout().row_bytes);
    int pushed = 0;
    EXPECT_EQ(PushRows(*gate_, memory_.rows(), shard, rows.data(), count, 0, pushed),
              AcquireResult::kAcquired);
  }
  void Scatter(const BatchPart& part, const HostLatents& in) {
    const Columns columns(memory_, spec_, in.valid.size());
    const LatentColumns out = columns.all();
    const auto purpose = cuda::CopyPurpose::kSetUp;
    cuda::CopyToDevice(out.deter, in.deter.data(), in.deter.size() * 2, purpose, memory_.reader());
    cuda::CopyToDevice(out.stoch, in.stoch.data(), in.stoch.size(), purpose, memory_.reader());
    memory_.rows().ScatterLatents(lease_, part, out);
  }
  HostLatents Gather(const BatchPart& part) {
    const auto cells = static_cast<std::size_t>(part.lanes * part.rows);
    HostLatents got(spec_, cells);
    const Columns columns(memory_, spec_, cells);
    const LatentColumns from = columns.all();
    memory_.rows().GatherLatents(lease_, part, from);
    const auto purpose = cuda::CopyPurpose::kBatch;
    cuda::CopyToHost(got.deter.data(), from.deter, got.deter.size() * 2, purpose, memory_.reader());
    cuda::CopyToHost(got.stoch.data(), from.stoch, got.stoch.size(), purpose, memory_.reader());
    cuda::CopyToHost(got.valid.data(), from.valid, cells, purpose, memory_.reader());
    return got;
  }
  void Close() { lease_.CloseAfter(memory_.rows().LastRead()); }

 private:
  struct Columns {
    Columns(DeviceMemory& memory, const LatentSpec& spec, std::size_t cells)
        : deter(memory.device(), cells * spec.deter * 2, "deter"),
          stoch(memory.device(), cells * spec.stoch, "stoch"),
          valid(memory.device(), cells, "valid") {}
    LatentColumns all() const {
      return {deter.data<std::uint16_t>(), stoch.data<std::uint8_t>(), valid.data<std::uint8_t>()};
    }
    cuda::DeviceBuffer deter, stoch, valid;
  };

  const LatentSpec spec_;
  DeviceMemory memory_;
  testing::ScriptedSelector* selector_ = nullptr;
  std::unique_ptr<ReplayGate> gate_;
  ReadLease lease_;
};

// Latents that are copied by 16 bytes at once, and by one.
class LatentRowsTest : public ::testing::TestWithParam<LatentSpec> {
 protected:
  void SetUp() override {
    if (const char* why = DeviceMemory::Missing()) GTEST_SKIP() << why;
  }
};

TEST_P(LatentRowsTest, NewRowsHaveNoneAndWhatIsWrittenBackIsFoundAgain) {
  LatentReplay replay(GetParam());
  const BatchPart all = {.lanes = 4, .rows = kRows};
  EXPECT_EQ(replay.Gather(all).valid, std::vector<std::uint8_t>(4 * kRows, 0));

  const BatchPart part = {.first_lane = 1, .lanes = 3, .first_row = 1, .rows = kRows - 1};
  const HostLatents in(GetParam(), static_cast<std::size_t>(part.lanes * part.rows));
  replay.Scatter(part, in);
  replay.Close();
  replay.LeaseFrom(12);
  const HostLatents back = replay.Gather(part);
  EXPECT_EQ(back.deter, in.deter);
  EXPECT_EQ(back.stoch, in.stoch);
  EXPECT_EQ(back.valid, std::vector<std::uint8_t>(in.valid.size(), 1));
  const HostLatents whole = replay.Gather(all);
  for (std::size_t cell = 0; cell < whole.valid.size(); ++cell) {
    EXPECT_EQ(whole.valid[cell], cell >= 4 && cell % 4 != 0 ? 1 : 0) << cell;
  }
  replay.Close();
}

// Another lap: the slots are the same, the rows are others. Shard 0 keeps what it has.
TEST_P(LatentRowsTest, RowsThatAreWrittenAnewHaveNoneAgain) {
  LatentReplay replay(GetParam());
  const BatchPart all = {.lanes = 4, .rows = kRows};
  replay.Scatter(all, HostLatents(GetParam(), 4 * kRows));
  EXPECT_EQ(replay.Gather(all).valid, std::vector<std::uint8_t>(4 * kRows, 1));
  replay.Close();
  replay.Push(1, kCapacity);
  replay.LeaseFrom(12 + kCapacity);
  const HostLatents got = replay.Gather(all);
  for (std::size_t cell = 0; cell < got.valid.size(); ++cell) {
    EXPECT_EQ(got.valid[cell], cell % 4 == 3 ? 1 : 0) << cell;
  }
  replay.Close();
}

INSTANTIATE_TEST_SUITE_P(Sizes, LatentRowsTest,
                         ::testing::Values(LatentSpec{.deter = 8, .stoch = 16},
                                           LatentSpec{.deter = 3, .stoch = 5}));

}  // namespace
}  // namespace tetrion
