#pragma once

#include <cstddef>
#include <cstdint>

namespace tetrion {

// One row is what all M lanes of a worker saw and did at one logical time t, as a structure of
// arrays. Rings, replay, streaming and CUDA kernels all take their offsets from here; no other
// code computes one. A row of lane l, time t (docs/SHAPES.md):
//
//   #  column      dtype         range, perspective                                valid where
//   0  header      u64, u32      row number t of the worker; policy_version        once a row
//   1  record      u8[M, bytes]  environment state seen at t                       always
//   2  action      i32[M]        chosen after seeing record_t                      0 where is_last
//   3  log_prob    f32[M]        behaviour log-probability of that action          0 where is_last
//   4  mask        u64[M]        bit a set: action a is legal at t                 only with masks
//   5  reward      f32[M]        received on arriving at record_t                  0 where is_first
//   6  flags       u8[M]         RowFlags                                          always
//   7  cont        f32[M]        0 if terminated, else 1 (truncation keeps 1)      always
//   8  episode_id  i32[M]        +1 with every episode of the lane                 always
//
// The terminal observation has its own row; the next row is the reset observation with is_first.
// An episode of n actions occupies n + 1 rows.
enum RowFlags : std::uint8_t {
  kIsFirst = 1,
  kIsLast = 2,      // no action is taken here; terminated, truncated or abandoned
  kTerminated = 4,  // implies kIsLast
  kTruncated = 8,   // implies kIsLast
};

// First column of a row.
struct RowHeader {
  std::uint64_t row;             // logical row number of the worker, from 0, never wraps
  std::uint32_t policy_version;  // version that chose the row's actions
  std::uint32_t reserved;        // 0
};
static_assert(sizeof(RowHeader) == 16);

struct RowSpec {
  std::uint32_t record_bytes = 0;
  std::uint32_t lanes = 0;  // M
  bool has_mask = false;
  bool operator==(const RowSpec&) const = default;
};

// Byte offsets of the columns from the start of a row; every column starts 64-byte aligned.
struct RowLayout {
  // CHECKs that lanes and record_bytes are positive and that a row stays below 1 GiB.
  explicit RowLayout(const RowSpec& spec);

  RowSpec spec;
  std::size_t header = 0;
  std::size_t record = 0;
  std::size_t action = 0;
  std::size_t log_prob = 0;
  std::size_t mask = 0;  // equals `reward` when the environment has no masks
  std::size_t reward = 0;
  std::size_t flags = 0;
  std::size_t cont = 0;
  std::size_t episode_id = 0;
  std::size_t row_bytes = 0;  // a multiple of 64

  // Identifies layout and version across processes; stored in every region that holds rows.
  std::uint64_t Hash() const;
};

// Bump when a column moves, changes type or changes meaning; rings of another version are refused.
inline constexpr std::uint32_t kRowLayoutVersion = 1;

// Typed pointers into one row. Does not own the memory; valid as long as the row is claimed, leased
// or otherwise held by the caller.
struct RowView {
  RowView() = default;
  RowView(const RowLayout& layout, std::byte* base)
      : header(reinterpret_cast<RowHeader*>(base + layout.header)),
        record(base + layout.record),
        action(reinterpret_cast<std::int32_t*>(base + layout.action)),
        log_prob(reinterpret_cast<float*>(base + layout.log_prob)),
        mask(layout.spec.has_mask ? reinterpret_cast<std::uint64_t*>(base + layout.mask) : nullptr),
        reward(reinterpret_cast<float*>(base + layout.reward)),
        flags(reinterpret_cast<std::uint8_t*>(base + layout.flags)),
        cont(reinterpret_cast<float*>(base + layout.cont)),
        episode_id(reinterpret_cast<std::int32_t*>(base + layout.episode_id)) {}

  RowHeader* header = nullptr;
  std::byte* record = nullptr;         // [M, record_bytes] u8
  std::int32_t* action = nullptr;      // [M]
  float* log_prob = nullptr;           // [M]
  std::uint64_t* mask = nullptr;       // [M]; null without masks
  float* reward = nullptr;             // [M]
  std::uint8_t* flags = nullptr;       // [M] RowFlags
  float* cont = nullptr;               // [M]
  std::int32_t* episode_id = nullptr;  // [M]
};

}  // namespace tetrion
