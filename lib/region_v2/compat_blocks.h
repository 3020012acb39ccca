#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/region_v2/compat_layout.h"

// Doorbell block and heap of the compatibility layout (compat_layout.h has the picture).

namespace tetrion {

inline constexpr std::uint32_t kCompatDoorbellEnabled = 1;  // flags bit 0; bit 1 (pending) unused

// An end that goes to sleep stores 1 in its own `asleep` word, re-checks its rings and sleeps on
// its doorbell word with the shared futex; while the word is 1 the other end adds 1 to the doorbell
// word after publishing and wakes it. An end that ignores words 40..55 has to poll.
struct CompatDoorbellBlock {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t cmd_doorbell;  // masked head of the command ring after the last send
  std::uint32_t cmd_flags;
  std::uint32_t cmd_irq_count;
  std::uint32_t rsp_doorbell;  // masked head of the response ring after the last send
  std::uint32_t rsp_flags;
  std::uint32_t rsp_irq_count;
  std::uint32_t cmd_writes;       // commands sent, ever
  std::uint32_t rsp_writes;       // responses sent, ever
  std::uint32_t obs_doorbell;     // written by the host: +1 when OBS became non-empty
  std::uint32_t action_doorbell;  // written by the kernel: +1 when ACTION became non-empty
  std::uint32_t kernel_asleep;    // written by the kernel: 1 while it sleeps on obs_doorbell
  std::uint32_t host_asleep;      // written by the host: 1 while it sleeps on action_doorbell
  std::uint32_t reserved[50];     // 0
};
static_assert(sizeof(CompatDoorbellBlock) == 0x100);
static_assert(offsetof(CompatDoorbellBlock, version) == 4);
static_assert(offsetof(CompatDoorbellBlock, cmd_doorbell) == 8);
static_assert(offsetof(CompatDoorbellBlock, cmd_flags) == 12);
static_assert(offsetof(CompatDoorbellBlock, cmd_irq_count) == 16);
static_assert(offsetof(CompatDoorbellBlock, rsp_doorbell) == 20);
static_assert(offsetof(CompatDoorbellBlock, rsp_flags) == 24);
static_assert(offsetof(CompatDoorbellBlock, rsp_irq_count) == 28);
static_assert(offsetof(CompatDoorbellBlock, cmd_writes) == 32);
static_assert(offsetof(CompatDoorbellBlock, rsp_writes) == 36);
static_assert(offsetof(CompatDoorbellBlock, obs_doorbell) == 40);
static_assert(offsetof(CompatDoorbellBlock, action_doorbell) == 44);
static_assert(offsetof(CompatDoorbellBlock, kernel_asleep) == 48);
static_assert(offsetof(CompatDoorbellBlock, host_asleep) == 52);
static_assert(offsetof(CompatDoorbellBlock, reserved) == 56);

struct CompatHeapControl {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t total_blocks;
  std::uint32_t free_blocks;
  std::uint32_t next_blob_id;                  // from 1
  std::uint32_t reserved[3];                   // 0
  std::uint8_t bitmap[kCompatHeapBlocks / 8];  // bit i % 8 of byte i / 8: block i is in use
};
static_assert(sizeof(CompatHeapControl) == kCompatMeshTable - kCompatHeapControl);
static_assert(offsetof(CompatHeapControl, version) == 4);
static_assert(offsetof(CompatHeapControl, total_blocks) == 8);
static_assert(offsetof(CompatHeapControl, free_blocks) == 12);
static_assert(offsetof(CompatHeapControl, next_blob_id) == 16);
static_assert(offsetof(CompatHeapControl, reserved) == 20);
static_assert(offsetof(CompatHeapControl, bitmap) == 32);

enum CompatBlobType : std::uint8_t { kCompatBlobRaw = 0, kCompatBlobTensor = 1 };

inline constexpr std::uint32_t kCompatMaxBlobId = 0xFFFF;

// First 32 bytes of a blob; the payload follows. Blobs start on a block.
struct CompatBlobHeader {
  std::uint32_t magic;        // 0 once freed
  std::uint16_t id;           // never 0
  std::uint8_t type;          // CompatBlobType
  std::uint8_t flags;         // 0
  std::uint32_t size;         // payload bytes
  std::uint32_t offset;       // of the blob's first block, this header included, in the heap data
  std::uint32_t checksum;     // CRC-32 (IEEE) of the payload; readers do not insist on it
  std::uint32_t reserved[3];  // 0
};
static_assert(sizeof(CompatBlobHeader) == 32 && offsetof(CompatBlobHeader, id) == 4);
static_assert(offsetof(CompatBlobHeader, type) == 6 && offsetof(CompatBlobHeader, flags) == 7);
static_assert(offsetof(CompatBlobHeader, size) == 8 && offsetof(CompatBlobHeader, offset) == 12);
static_assert(offsetof(CompatBlobHeader, checksum) == 16);
static_assert(offsetof(CompatBlobHeader, reserved) == 20);

// Payload of the metadata blob (raw).
struct CompatMetadata {
  std::uint32_t obs_dim;
  std::uint32_t action_count;
  std::uint64_t spec_hash;
};
static_assert(sizeof(CompatMetadata) == 16 && offsetof(CompatMetadata, action_count) == 4);
static_assert(offsetof(CompatMetadata, spec_hash) == 8);

// Payload of an observation blob (tensor of 7 f32) in fallback mode: seq is the kernel's to count.
struct CompatObsBlob {
  float obs[4];
  float reward;
  float done;
  float model_id;
};
static_assert(sizeof(CompatObsBlob) == 28 && offsetof(CompatObsBlob, reward) == 16);
static_assert(offsetof(CompatObsBlob, done) == 20 && offsetof(CompatObsBlob, model_id) == 24);

}  // namespace tetrion
