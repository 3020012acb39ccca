#include "lib/replay/replay_ring_cuda.h"

#include <memory>
#include <string>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/cuda/host_copy_guard.h"
#include "lib/frame/row_check.h"
#include "lib/replay/selectors/uniform.h"

namespace tetrion {
namespace {

std::unique_ptr<Selector> SelectorOf(const ReplayRingCuda::Config& config) {
  return std::make_unique<UniformSelector>(
      UniformSelector::Config{.window_rows = config.seq_len,
                              .lanes = static_cast<int>(config.row.lanes),
                              .seed = config.seed});
}

}  // namespace

ReplayRingCuda::ReplayRingCuda(const cuda::Device& device, const Config& config,
                               cuda::Stream& writer, cuda::Stream& reader)
    : config_(config),
      rows_(device, config.row, 1, config.capacity, writer, reader),
      gate_({.capacity_rows = config.capacity,
             .commit_stride = config.commit_stride,
             .safety_margin_rows = config.safety_margin},
            SelectorOf(config), Limiter::Unlimited()) {
  if (config.row.record_bytes == PixelGather::kRecordBytes) {
    pixels_.emplace(rows_, config.unpack_impl);
  }
}

void ReplayRingCuda::Require(std::uint64_t t) {
  if (!chunk_) {
    chunk_ = gate_.Acquire(0, config_.commit_stride, kNanosPerSecond);
    if (!chunk_) {
      throw Error(ExitCode::kTryAgain, "a sampled batch holds the rows that row " +
                                           std::to_string(t) + " would overwrite");
    }
  }
  TETRION_CHECK(t >= chunk_.first && t < chunk_.first + static_cast<std::uint64_t>(chunk_.rows),
                "a row is written in its own chunk, before that is committed");
}

cuda::DeviceSpan<std::byte> ReplayRingCuda::obs_slot(std::uint64_t t) {
  Require(t);
  const RowSpec& row = config_.row;
  return {rows_.Slots(0).At(t).record, static_cast<std::size_t>(row.lanes) * row.record_bytes};
}

void ReplayRingCuda::push_step(std::uint64_t t, const StepFields& fields) {
  Require(t);
  LaunchPushStep(rows_.writer(), rows_.Slots(0), t, fields);
}

std::uint64_t ReplayRingCuda::record_commit(std::uint64_t write_t) {
  if (!chunk_ || write_t == chunk_.first) return committed_t();
  TETRION_CHECK(write_t > chunk_.first, "rows are committed in their order");
  Require(write_t - 1);
  Chunk written = chunk_;
  written.rows = static_cast<int>(write_t - chunk_.first);
  chunk_ = {};
  const MutexLock lock(mu_);
  committed_ = rows_.Written();
  gate_.Commit(written, committed_);
  return committed_t();
}

void ReplayRingCuda::wait_for_commit(std::uint64_t target_t) {
  const MutexLock lock(mu_);
  const std::uint64_t committed = committed_t();
  if (target_t > committed) {
    throw Error(ExitCode::kInternal, "rows below " + std::to_string(target_t) +
                                         " are not committed, only those below " +
                                         std::to_string(committed));
  }
  if (committed_ != nullptr) committed_->Fence();
}

ReplayRingCuda::Sampled ReplayRingCuda::sample_sequences(int sequences, const DeviceColumns& out,
                                                         float* pixels) {
  ReadLease lease = gate_.OpenLease(sequences, config_.seq_len, 0);
  const bool ready = static_cast<bool>(lease);
  if (ready) {
    rows_.GatherOnDevice(lease, 0, sequences, out);
    TETRION_CHECK(pixels == nullptr || pixels_, "records are packed pictures");
    if (pixels != nullptr) pixels_->Gather(lease, 0, sequences, pixels);
    lease.CloseAfter(rows_.LastRead());
  }
  const ShardStats stats = gate_.Stats(0);
  const auto margin = static_cast<std::uint64_t>(config_.safety_margin);
  return {.ready = ready,
          .have_rows = stats.valid_rows > margin ? stats.valid_rows - margin : 0,
          .need_rows = static_cast<std::uint64_t>(config_.seq_len)};
}

const char* ReplayRingCuda::check_invariants(std::uint64_t from, std::uint64_t to) {
  wait_for_commit(to);
  const ShardStats stats = gate_.Stats(0);
  TETRION_CHECK(from + stats.valid_rows >= stats.committed_rows, "rows that are still there");
  const RowLayout& layout = rows_.layout();
  std::vector<std::byte> last, row(layout.row_bytes);
  for (std::uint64_t t = from; t < to; ++t) {
    rows_.CopyRowToHost(0, t, row.data());
    // No lease holds the row. The gate gives its slot away before anything writes there.
    const ShardStats now = gate_.Stats(0);
    if (t + now.valid_rows < now.committed_rows) {
      throw Error(
          ExitCode::kTryAgain,
          "row " + std::to_string(t) +
              " was overwritten while it was checked: check newer rows, or pause the writer");
    }
    const char* const wrong = t == from ? nullptr : CheckRowPair(layout, last.data(), row.data());
    if (wrong != nullptr) return wrong;
    last = row;
  }
  return nullptr;
}

std::uint64_t ReplayRingCuda::safe_max_t() const {
  const auto margin = static_cast<std::uint64_t>(config_.safety_margin);
  const std::uint64_t committed = committed_t();
  return committed > margin ? committed - margin : 0;
}

void ReplayRingCuda::assert_no_host_memcpy(const std::function<void()>& region) {
  const cuda::HostCopyGuard guard;
  region();
  std::string all;
  for (const std::string& violation : guard.Violations()) all += "; " + violation;
  if (all.empty()) return;
  throw Error(ExitCode::kInternal, "the region is not free of the host" + all);
}

}  // namespace tetrion
