#include "lib/replay/host_rows.h"

#include <algorithm>
#include <cstring>
#include <string>
#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "lib/core/align.h"
#include "lib/core/check.h"
#include "lib/core/prefetch.h"
#include "lib/frame/row_check.h"
#include "lib/replay/batch_lanes.h"

namespace tetrion {
namespace {

// No cache keeps the rows of a larger replay until they are read: they are written past the caches,
// which need not fetch the lines first and keep what the process reads sooner.
constexpr std::uint64_t kCachedBytes = std::uint64_t{64} << 20;

// How many rows ahead a window of some lanes is asked for: its records lie a row apart, where the
// processor's own prefetching does not look; the first rows of the next window while the last ones
// of a window are copied. Whole rows, which lie side by side, are slower when they are asked for
// (docs/benchmarks.md), and records of more bytes are left to the processor.
constexpr int kRowsAhead = 3;
constexpr std::size_t kPrefetchedBytes = 4096;

std::string Described(const RowLayout& layout, int shards, std::uint64_t capacity_rows) {
  return "a replay of " + std::to_string(shards) + " shards x " + std::to_string(capacity_rows) +
         " rows x " + std::to_string(layout.row_bytes) + " bytes,";
}

// As memcpy, past the caches. `to` is 64-byte aligned, `bytes` a multiple of 64.
void StreamCopy(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__AVX__)
  constexpr std::size_t kStoreBytes = 32;
  for (const std::byte* const end = from + bytes; from != end;
       from += kStoreBytes, to += kStoreBytes) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  _mm_sfence();  // such stores are not ordered by the release that commits them
#else
  std::memcpy(to, from, bytes);
#endif
}

// Cells [cell, cell + lanes) of `out` (null: none) from lanes [lane, lane + lanes) of the column.
template <typename Cell>
void CopyCells(Cell* out, const std::byte* column, std::size_t lane, std::size_t lanes,
               std::size_t cell) {
  if (out == nullptr) return;
  const std::byte* const from = column + lane * sizeof(Cell);
  if (lanes == 1) {  // one move, not a call
    std::memcpy(out + cell, from, sizeof(Cell));
  } else {
    std::memcpy(out + cell, from, lanes * sizeof(Cell));
  }
}

}  // namespace

HostRows::HostRows(const RowSpec& row, int shards, int capacity_rows,
                   const std::optional<LatentSpec>& latents, bool lane_windows)
    : layout_(row),
      shards_(shards),
      capacity_rows_(static_cast<std::uint64_t>(capacity_rows)),
      memory_(RowBytes(), Described(layout_, shards, capacity_rows_)) {
  if (lane_windows) lane_columns_.emplace(layout_, shards, capacity_rows_);
  if (latents) latents_.emplace(*latents, row.lanes, shards, capacity_rows_);
}

std::uint64_t HostRows::RowBytes() const {
  return static_cast<std::uint64_t>(shards_) * capacity_rows_ * layout_.row_bytes;
}

std::uint64_t HostRows::memory_bytes() const {
  return RowBytes() + (lane_columns_ ? lane_columns_->memory_bytes() : 0) +
         (latents_ ? latents_->memory_bytes() : 0);
}

const Event* HostRows::Write(const Chunk& chunk, const std::byte* src) {
  std::byte* const to = Row(chunk.shard, chunk.first);
  const std::size_t bytes = static_cast<std::size_t>(chunk.rows) * layout_.row_bytes;
  if (RowBytes() > kCachedBytes) {
    StreamCopy(to, src, bytes);
  } else {
    std::memcpy(to, src, bytes);
  }
  if (lane_columns_) lane_columns_->Write(chunk, src);
  if (latents_) latents_->Forget(chunk);
  return nullptr;
}

std::byte* HostRows::Row(int shard, std::uint64_t row) const {
  return Slot(shard, row % capacity_rows_);
}

void HostRows::Gather(const ReadLease& lease, int first_lane, int lanes,
                      const RowColumns& out) const {
  const auto b = static_cast<std::size_t>(lanes);
  RunRows at(lease, static_cast<int>(layout_.spec.lanes), first_lane, lanes, capacity_rows_);
  RunRows ahead = at;
  const auto prefetch = [&] {
    if (ahead.Next()) Prefetch(ahead);
  };
  for (int i = 0; i < kRowsAhead; ++i) prefetch();
  while (at.Next()) {
    prefetch();
    Copy(at, b, out);
  }
  if (out.flags == nullptr) return;
  for (std::size_t cell = 0; cell < b * static_cast<std::size_t>(lease.rows() - 1); ++cell) {
    const int last = (out.flags[cell + b] & kIsFirst) != 0 ? kIsLast : 0;
    out.flags[cell] = static_cast<std::uint8_t>(out.flags[cell] | last);
  }
}

void HostRows::Prefetch(const RunRows& at) const {
  const LaneRun& run = at.run();
  const std::size_t bytes = static_cast<std::size_t>(run.lanes) * layout_.spec.record_bytes;
  if (run.lanes == static_cast<int>(layout_.spec.lanes) || bytes > kPrefetchedBytes) return;
  const std::byte* const row = Slot(run.window.shard, at.slot());
  const auto lane = static_cast<std::size_t>(run.lane);
  const std::byte* const record = row + layout_.record + lane * layout_.spec.record_bytes;
  // Counted down: as a loop over offsets GCC 12 makes windows of a lane a tenth slower on a Zen 5.
  const std::byte* line = record;
  for (std::size_t left = AlignUp(bytes, kColumnAlignBytes) / kColumnAlignBytes; left > 0; --left) {
    PrefetchLine(line);
    line += kColumnAlignBytes;
  }
  if (!IsByLane(run.window)) {
    PrefetchLine(row + layout_.header);  // GatherVersions will read it
    ForEachNumber(layout_.spec, [&]<typename Cell>(auto column, Cell* RowColumns::*) {
      PrefetchLine(row + layout_.*column + lane * sizeof(Cell));
    });
  } else if (at.t() == 0 || at.slot() % HostLaneColumns::kBlockRows == 0) {
    lane_columns_->Prefetch(run.window.shard, at.slot(), run.lane);
  }
}

void HostRows::Copy(const RunRows& at, std::size_t batch_lanes, const RowColumns& out) const {
  const LaneRun& run = at.run();
  const std::byte* const row = Slot(run.window.shard, at.slot());
  const std::size_t cell = at.t() * batch_lanes + static_cast<std::size_t>(run.cell);
  const auto lane = static_cast<std::size_t>(run.lane), lanes = static_cast<std::size_t>(run.lanes);
  const std::size_t record_bytes = layout_.spec.record_bytes;
  const std::byte* const record = row + layout_.record + lane * record_bytes;
  if (out.record != nullptr) {
    std::memcpy(out.record + cell * record_bytes, record, lanes * record_bytes);
  }
  if (out.view != nullptr) {
    out.obs->expand(record, run.lanes, out.obs->queue_size,
                    out.view + cell * static_cast<std::size_t>(out.obs->view_floats));
  }
  if (IsByLane(run.window)) {  // all at once behind the last record, when their lines are there
    if (at.IsLast()) lane_columns_->Gather(run, at.t() + 1, batch_lanes, out);
    return;
  }
  ForEachNumber(layout_.spec, [&](auto column, auto cells) {
    CopyCells(out.*cells, row + layout_.*column, lane, lanes, cell);
  });
}

void HostRows::GatherVersions(const ReadLease& lease, std::uint32_t* out) const {
  const std::size_t windows = lease.windows().size();
  for (std::size_t w = 0; w < windows; ++w) {
    const Window& window = lease.windows()[w];
    std::uint64_t slot = window.start % capacity_rows_;
    for (std::size_t t = 0; t < static_cast<std::size_t>(lease.rows()); ++t) {
      out[t * windows + w] = PolicyVersion(window, slot);
      if (++slot == capacity_rows_) slot = 0;
    }
  }
}

std::uint32_t HostRows::PolicyVersion(const Window& window, std::uint64_t slot) const {
  if (IsByLane(window)) return lane_columns_->policy_version(window.shard, slot);
  RowHeader header;
  std::memcpy(&header, Slot(window.shard, slot), sizeof header);
  return header.policy_version;
}

void HostRows::GatherLatents(const ReadLease& lease, const BatchPart& part,
                             const LatentColumns& out) const {
  TETRION_CHECK(latents_.has_value(), "rows made without latents");
  latents_->Gather(lease, part, out);
}

void HostRows::ScatterLatents(const ReadLease& lease, const BatchPart& part,
                              const LatentColumns& in) {
  TETRION_CHECK(latents_.has_value(), "rows made without latents");
  latents_->Scatter(lease, part, in);
}

const char* HostRows::CheckInvariants(int shard, std::uint64_t from, std::uint64_t to) const {
  for (std::uint64_t row = from; row + 1 < to; ++row) {
    if (const char* wrong = CheckRowPair(layout_, Row(shard, row), Row(shard, row + 1)))
      return wrong;
  }
  return nullptr;
}

}  // namespace tetrion
