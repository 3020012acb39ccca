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
// processor's own prefetching does not look. Whole rows, which lie side by side, are slower when
// they are asked for (docs/benchmarks.md), and records of more bytes are left to the processor.
constexpr std::size_t kRowsAhead = 3;
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

bool IsPrefetched(const RowLayout& layout, int lanes) {
  return lanes < static_cast<int>(layout.spec.lanes) &&
         static_cast<std::size_t>(lanes) * layout.spec.record_bytes <= kPrefetchedBytes;
}

// Asks for the records of lanes [lane, lane + lanes) of a row, and for the first line of its header
// and of each column, which CopyLanes and GatherVersions will read.
void PrefetchLanes(const RowLayout& layout, const std::byte* row, std::size_t lane,
                   std::size_t lanes) {
  const std::byte* const record = row + layout.record + lane * layout.spec.record_bytes;
  for (std::size_t at = 0; at < lanes * layout.spec.record_bytes; at += kColumnAlignBytes) {
    PrefetchLine(record + at);
  }
  PrefetchLine(row + layout.header);
  PrefetchLine(row + layout.action + lane * sizeof(std::int32_t));
  PrefetchLine(row + layout.log_prob + lane * sizeof(float));
  PrefetchLine(row + layout.mask + lane * sizeof(std::uint64_t));  // or what is in its place
  PrefetchLine(row + layout.reward + lane * sizeof(float));
  PrefetchLine(row + layout.flags + lane);
  PrefetchLine(row + layout.cont + lane * sizeof(float));
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

// Rows of one shard in order, around the end of its memory.
class RowWalk {
 public:
  // `slots`: the shard's memory, of `capacity_rows` slots.
  RowWalk(const std::byte* slots, std::uint64_t first, std::uint64_t capacity_rows,
          std::size_t row_bytes)
      : begin_(slots),
        end_(slots + capacity_rows * row_bytes),
        row_bytes_(row_bytes),
        next_(slots + first % capacity_rows * row_bytes) {}
  const std::byte* Next() {
    const std::byte* const row = next_;
    next_ += row_bytes_;
    if (next_ == end_) next_ = begin_;
    return row;
  }

 private:
  const std::byte *const begin_, *const end_;
  const std::size_t row_bytes_;
  const std::byte* next_;
};

}  // namespace

HostRows::HostRows(const RowSpec& row, int shards, int capacity_rows,
                   const std::optional<LatentSpec>& latents)
    : layout_(row),
      shards_(shards),
      capacity_rows_(static_cast<std::uint64_t>(capacity_rows)),
      memory_(RowBytes(), Described(layout_, shards, capacity_rows_)) {
  if (latents) latents_.emplace(*latents, row.lanes, shards, capacity_rows_);
}

std::uint64_t HostRows::RowBytes() const {
  return static_cast<std::uint64_t>(shards_) * capacity_rows_ * layout_.row_bytes;
}

std::uint64_t HostRows::memory_bytes() const {
  return RowBytes() + (latents_ ? latents_->memory_bytes() : 0);
}

const Event* HostRows::Write(const Chunk& chunk, const std::byte* src) {
  std::byte* const to = Row(chunk.shard, chunk.first);
  const std::size_t bytes = static_cast<std::size_t>(chunk.rows) * layout_.row_bytes;
  if (RowBytes() > kCachedBytes) {
    StreamCopy(to, src, bytes);
  } else {
    std::memcpy(to, src, bytes);
  }
  if (latents_) latents_->Forget(chunk);
  return nullptr;
}

std::byte* HostRows::Row(int shard, std::uint64_t row) const {
  return memory_.data() +
         (static_cast<std::uint64_t>(shard) * capacity_rows_ + row % capacity_rows_) *
             layout_.row_bytes;
}

void HostRows::Gather(const ReadLease& lease, int first_lane, int lanes,
                      const RowColumns& out) const {
  const auto b = static_cast<std::size_t>(lanes);
  const int lanes_of_a_row = static_cast<int>(layout_.spec.lanes);
  ForEachLaneRun(lease, lanes_of_a_row, first_lane, lanes, [&](const LaneRun& run) {
    RowWalk rows(Row(run.window.shard, 0), run.window.start, capacity_rows_, layout_.row_bytes);
    RowWalk ahead = rows;
    const auto prefetch = [&] {
      PrefetchLanes(layout_, ahead.Next(), static_cast<std::size_t>(run.lane),
                    static_cast<std::size_t>(run.lanes));
    };
    const auto count = static_cast<std::size_t>(lease.rows());
    const std::size_t prefetched = IsPrefetched(layout_, run.lanes) ? count : 0;
    for (std::size_t t = 0; t < std::min(kRowsAhead, prefetched); ++t) prefetch();
    for (std::size_t t = 0; t < count; ++t) {
      if (t + kRowsAhead < prefetched) prefetch();
      CopyLanes(rows.Next(), static_cast<std::size_t>(run.lane),
                static_cast<std::size_t>(run.lanes), t * b + static_cast<std::size_t>(run.cell),
                out);
    }
  });
  if (out.flags == nullptr) return;
  for (std::size_t cell = 0; cell < b * static_cast<std::size_t>(lease.rows() - 1); ++cell) {
    const int last = (out.flags[cell + b] & kIsFirst) != 0 ? kIsLast : 0;
    out.flags[cell] = static_cast<std::uint8_t>(out.flags[cell] | last);
  }
}

void HostRows::CopyLanes(const std::byte* row, std::size_t lane, std::size_t lanes,
                         std::size_t cell, const RowColumns& out) const {
  const std::size_t record_bytes = layout_.spec.record_bytes;
  if (out.record != nullptr) {
    std::memcpy(out.record + cell * record_bytes, row + layout_.record + lane * record_bytes,
                lanes * record_bytes);
  }
  if (out.view != nullptr) {
    out.obs->expand(row + layout_.record + lane * record_bytes, static_cast<std::int64_t>(lanes),
                    out.obs->queue_size,
                    out.view + cell * static_cast<std::size_t>(out.obs->view_floats));
  }
  CopyCells(out.action, row + layout_.action, lane, lanes, cell);
  CopyCells(out.log_prob, row + layout_.log_prob, lane, lanes, cell);
  if (layout_.spec.has_mask) {
    CopyCells(out.mask, row + layout_.mask, lane, lanes, cell);
  }
  CopyCells(out.reward, row + layout_.reward, lane, lanes, cell);
  CopyCells(out.flags, row + layout_.flags, lane, lanes, cell);
  CopyCells(out.cont, row + layout_.cont, lane, lanes, cell);
}

void HostRows::GatherVersions(const ReadLease& lease, std::uint32_t* out) const {
  const std::size_t windows = lease.windows().size();
  for (std::size_t w = 0; w < windows; ++w) {
    const Window& window = lease.windows()[w];
    RowWalk rows(Row(window.shard, 0), window.start, capacity_rows_, layout_.row_bytes);
    for (std::size_t t = 0; t < static_cast<std::size_t>(lease.rows()); ++t) {
      RowHeader header;
      std::memcpy(&header, rows.Next(), sizeof header);
      out[t * windows + w] = header.policy_version;
    }
  }
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
