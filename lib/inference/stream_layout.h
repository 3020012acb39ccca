#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/core/align.h"
#include "lib/frame/row_layout.h"
#include "lib/shm/bell.h"
#include "lib/shm/region_header.h"
#include "lib/shm/spsc_ring.h"

namespace tetrion {

// The layout of streamed inference: one region per streamed worker. The environment's end (the
// actor's worker) owns it; the policy's end (the learner's inference agent) writes answers into it.
//
//   0              4096                                   stream                    region_bytes
//   | RegionHeader | OBS ring: RingBlock page, rows ... | StreamBlock page | command ring |
//                                                         response ring | ACTION ring |
//
// Every ring is the one of lib/shm/spsc_ring.h: head and tail free-running u64 on 128-byte lines of
// their own, all of the capacity usable, records at a multiple of 64.
//   OBS       row of RowLayout, environment -> policy. Row t is record t. The environment's end
//             leaves the columns action, log_prob and the header's policy_version empty; the
//             policy's end fills them in place and thereby completes the row for the replay, which
//             alone releases it. Where the policy failed, it also adds is_last and truncated to the
//             flags of the lanes that still play.
//   ACTION    ActionRecord, policy -> environment: one per row, in order, seq = the row's number.
//   COMMAND   StreamCommand, policy -> environment.
//   RESPONSE  StreamResponse, environment -> policy.
//
// Attach: the policy's end sends ENV_RESET with an epoch of its own choice, greater than the
// block's. The environment's end gives up its live episodes, discards queued answers and responds
// with result = number of the next row it will publish. The policy's end passes everything before
// that row (counted lost) and answers from there on. A restarted policy's end does the same. The
// region's flock tells the death of the environment's end, the flock of the learner's region that
// of the policy's end.
inline constexpr std::uint32_t kStreamMagic = 0x5354524D;  // "STRM"
// Bump whenever a field moves or changes meaning; magic and version never move.
inline constexpr std::uint32_t kStreamVersion = 2;

inline constexpr std::uint64_t kStreamCommands = 16;  // capacity of command and response ring

struct StreamBlock {
  std::uint32_t magic;     // with the rest of this line written before the region is sealed
  std::uint32_t version;   // kStreamVersion
  std::uint64_t row_hash;  // RowLayout::Hash of the OBS records
  std::uint64_t action_record_bytes;  // of an ACTION record
  std::uint64_t action_capacity;      // of the ACTION ring, a power of two
  std::uint64_t reserved[4];          // 0
  std::atomic<std::uint64_t> epoch;   // of the policy's end attached last, which writes it
  BellBlock env_bell;                 // the policy's end wakes the environment's
};
static_assert(offsetof(StreamBlock, version) == 4);
static_assert(offsetof(StreamBlock, row_hash) == 8);
static_assert(offsetof(StreamBlock, action_record_bytes) == 16);
static_assert(offsetof(StreamBlock, action_capacity) == 24);
static_assert(offsetof(StreamBlock, reserved) == 32);
static_assert(offsetof(StreamBlock, epoch) == 64);
static_assert(offsetof(StreamBlock, env_bell) == 128);
static_assert(sizeof(StreamBlock) == 384);
inline constexpr std::uint64_t kStreamBlockBytes = 4096;  // its page

enum StreamCommandCode : std::uint16_t {
  kStreamReset = 0x0100,
};
enum StreamStatus : std::uint16_t {
  kStreamOk = 0x8000,
  kStreamError = 0x8001,
};

struct StreamCommand {
  std::uint16_t cmd;       // StreamCommandCode
  std::uint16_t flags;     // 0
  std::uint32_t reserved;  // 0
  std::uint64_t epoch;     // of the policy's end
  std::uint64_t timestamp_ns;
  std::uint64_t reserved2;  // 0
};
static_assert(sizeof(StreamCommand) == 32);
static_assert(offsetof(StreamCommand, cmd) == 0 && offsetof(StreamCommand, flags) == 2);
static_assert(offsetof(StreamCommand, reserved) == 4 && offsetof(StreamCommand, epoch) == 8);
static_assert(offsetof(StreamCommand, timestamp_ns) == 16);
static_assert(offsetof(StreamCommand, reserved2) == 24);

struct StreamResponse {
  std::uint16_t status;    // StreamStatus
  std::uint16_t orig_cmd;  // the command answered
  std::uint32_t reserved;  // 0
  std::uint64_t epoch;     // of the command
  std::uint64_t result;    // kStreamReset: number of the next row; error: the command
  std::uint64_t timestamp_ns;
};
static_assert(sizeof(StreamResponse) == 32);
static_assert(offsetof(StreamResponse, status) == 0 && offsetof(StreamResponse, orig_cmd) == 2);
static_assert(offsetof(StreamResponse, reserved) == 4 && offsetof(StreamResponse, epoch) == 8);
static_assert(offsetof(StreamResponse, result) == 16);
static_assert(offsetof(StreamResponse, timestamp_ns) == 24);

enum ActionFlags : std::uint32_t {
  kActionNotFinite = 1,  // the policy failed: its end has cut the row's live lanes
};

// Head of an ACTION record; actions i32[M] and log-probabilities f32[M] follow.
struct ActionRecord {
  std::uint64_t seq;      // number of the row answered
  std::uint64_t ack_seq;  // the same: rows are answered in order
  std::uint32_t policy_version;
  std::uint32_t flags;  // ActionFlags
  std::uint64_t reserved;
};
static_assert(sizeof(ActionRecord) == 32);
static_assert(offsetof(ActionRecord, seq) == 0 && offsetof(ActionRecord, ack_seq) == 8);
static_assert(offsetof(ActionRecord, policy_version) == 16 && offsetof(ActionRecord, flags) == 20);
static_assert(offsetof(ActionRecord, reserved) == 24);

// Sizes and places of one stream, equal at both ends.
struct StreamLayout {
  // `rows`: capacity of the OBS ring, a power of two. CHECKs it.
  StreamLayout(const RowLayout& row, std::uint64_t rows);

  RowLayout row;
  RingSpec obs, command, response, action;
  std::uint64_t block = 0;  // offset of the StreamBlock from the payload's start
  std::uint64_t command_ring = 0, response_ring = 0, action_ring = 0;  // the same
  std::uint64_t region_bytes = 0;                                      // header included
  // Offsets within an ACTION record.
  std::uint64_t actions = sizeof(ActionRecord);
  std::uint64_t log_probs = 0;
};

}  // namespace tetrion
