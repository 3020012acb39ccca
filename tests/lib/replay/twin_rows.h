#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lib/core/philox.h"
#include "lib/frame/row_layout.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "tests/lib/replay/device_memory.h"
#include "tests/lib/replay/scripted_selector.h"

namespace tetrion::testing {

// The same rows of random bytes on the host and on a device behind one gate: two laps and a part
// of a chunk, so that windows wrap.
class TwinRows {
 public:
  static constexpr int kShards = 2, kCapacity = 24, kStride = 4;
  static constexpr std::uint64_t kRows = 2 * kCapacity + 5;

  explicit TwinRows(const RowSpec& row, std::uint64_t seed = 1)
      : host_(row, kShards, kCapacity), device_(row, kShards, kCapacity) {
    auto selector = std::make_unique<ScriptedSelector>();
    selector_ = selector.get();
    gate_ = std::make_unique<ReplayGate>(
        GateConfig{.shards = kShards, .capacity_rows = kCapacity, .commit_stride = kStride},
        std::move(selector), Limiter::Unlimited());
    std::vector<std::byte> bytes(host_.layout().row_bytes);
    for (std::uint64_t t = 0; t < kRows; ++t) {
      for (int shard = 0; shard < kShards; ++shard) {
        FillRow(bytes, seed, t * kShards + static_cast<std::uint64_t>(shard));
        const Chunk chunk = gate_->Acquire(shard, 1, 0);
        static_cast<void>(host_.Write(chunk, bytes.data()));
        gate_->Commit(chunk, device_.rows().Write(chunk, bytes.data()));
      }
    }
    for (int shard = 0; shard < kShards; ++shard) gate_->Flush(shard);
  }

  const HostRows& host() const { return host_; }
  DeviceMemory& device() { return device_; }
  // `windows` random windows of `rows` rows, of one lane or of all.
  ReadLease Lease(int windows, int rows, std::uint64_t seed) {
    selector_->windows.clear();
    for (int i = 0; i < windows; ++i) {
      const PhiloxBlock draw =
          PhiloxDraw(seed, static_cast<std::uint64_t>(i), 0, PhiloxPurpose::kSampler);
      const std::uint64_t lo = (kRows - 1) / kStride * kStride + kStride - kCapacity;
      const auto starts = static_cast<std::uint32_t>(kRows - lo) - static_cast<std::uint32_t>(rows);
      const int lane = static_cast<int>(BoundedDraw(draw.word[2], host_.layout().spec.lanes));
      selector_->windows.push_back({.shard = static_cast<int>(draw.word[0] % kShards),
                                    .start = lo + BoundedDraw(draw.word[1], starts + 1),
                                    .lane = draw.word[3] % 4 == 0 ? -1 : lane});
    }
    return gate_->OpenLease(windows, rows, 0);
  }

 private:
  static void FillRow(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t number) {
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
      const PhiloxBlock draw = PhiloxDraw(seed, number, static_cast<std::uint32_t>(at / 16),
                                          PhiloxPurpose::kInitialState);
      std::memcpy(bytes.data() + at, draw.word, 16);
    }
  }

  HostRows host_;
  DeviceMemory device_;
  ScriptedSelector* selector_ = nullptr;
  std::unique_ptr<ReplayGate> gate_;
};

}  // namespace tetrion::testing
