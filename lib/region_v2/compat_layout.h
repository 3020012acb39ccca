#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

// The compatibility layout of the streamed rings: a region any program can map, byte for byte.
//
//   0x00000  command ring     32 B header + 1024 x 16 B   kernel -> host
//   0x08000  response ring    32 B header + 1024 x 16 B   host -> kernel
//   0x10000  doorbell block   0x100
//   0x10100  heap control     32 B header + bitmap of 14080 blocks (0x6E0 B)
//   0x10800  mesh table       0x800, untouched
//   0x11000  heap data        64 B blocks; the first 14080 are managed
//   0xFE000  OBS ring         32 B header + 64 x 32 B     host -> kernel
//   0xFF000  ACTION ring      32 B header + 64 x 16 B     kernel -> host
//   0x100000 end of the 1 MiB region. A 2 MiB region may hold OBS here and ACTION at 0x101000
//            instead; an attaching end finds them by their magics.
//
// Little-endian, naturally aligned. The kernel (policy) lays the region out, every magic last; the
// host (environment) waits for the magics. Offsets and sizes never change: other programs know
// them.

namespace tetrion {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::size_t kCompatRegionBytes = 0x100000;
inline constexpr std::size_t kCompatLargeRegionBytes = 0x200000;
inline constexpr std::size_t kCompatCommandRing = 0x00000;
inline constexpr std::size_t kCompatResponseRing = 0x08000;
inline constexpr std::size_t kCompatDoorbell = 0x10000;
inline constexpr std::size_t kCompatHeapControl = 0x10100;
inline constexpr std::size_t kCompatMeshTable = 0x10800;
inline constexpr std::size_t kCompatHeapData = 0x11000;
inline constexpr std::size_t kCompatObsRing = 0xFE000;
inline constexpr std::size_t kCompatActionRing = 0xFF000;
inline constexpr std::size_t kCompatLargeObsRing = 0x100000;
inline constexpr std::size_t kCompatLargeActionRing = 0x101000;

inline constexpr std::uint32_t kCompatCommandMagic = 0x51DECA9E;
inline constexpr std::uint32_t kCompatResponseMagic = 0x52535030;
inline constexpr std::uint32_t kCompatStreamMagic = 0x5354524D;  // both stream rings
inline constexpr std::uint32_t kCompatHeapMagic = 0x48454150;
inline constexpr std::uint32_t kCompatBlobMagic = 0x424C4F42;
inline constexpr std::uint32_t kCompatDoorbellMagic = 0x444F4F52;
inline constexpr std::uint32_t kCompatVersion = 1;  // of doorbell block and heap control

inline constexpr std::uint32_t kCompatCommandEntries = 1024;  // one always stays free
inline constexpr std::uint32_t kCompatStreamEntries = 64;
inline constexpr std::uint32_t kCompatBlockBytes = 64;
inline constexpr std::uint32_t kCompatHeapBlocks = 14080;  // under our management
// Most that another program may manage: as far as the stream rings, or the end of 1 MiB without.
inline constexpr std::uint32_t kCompatMostHeapBlocks =
    (kCompatObsRing - kCompatHeapData) / kCompatBlockBytes;
inline constexpr std::uint32_t kCompatMostHeapBlocksWithoutRings =
    (kCompatRegionBytes - kCompatHeapData) / kCompatBlockBytes;
static_assert(kCompatMostHeapBlocks == 15168 && kCompatMostHeapBlocksWithoutRings == 15296);
inline constexpr std::uint32_t kCompatMaxOutstanding = 8;  // observation blobs in fallback mode

// Indices are masked: 0..size-1. Empty: head == tail. Full: (head + 1) mod size == tail.
struct CompatRingHeader {
  std::uint32_t magic;
  std::uint32_t head;           // written by the producer only
  std::uint32_t tail;           // written by the consumer only
  std::uint32_t size;           // entries, a power of two
  std::uint32_t epoch;          // 1 after layout, +1 with every kernel that adopts the region
  std::uint32_t producer_beat;  // counter; 0: judge the producer by its head
  std::uint32_t consumer_beat;  // counter; 0: judge the consumer by its tail
  std::uint32_t reserved;       // 0
};
static_assert(sizeof(CompatRingHeader) == 32 && offsetof(CompatRingHeader, head) == 4);
static_assert(offsetof(CompatRingHeader, tail) == 8 && offsetof(CompatRingHeader, size) == 12);
static_assert(offsetof(CompatRingHeader, epoch) == 16);
static_assert(offsetof(CompatRingHeader, producer_beat) == 20);
static_assert(offsetof(CompatRingHeader, consumer_beat) == 24);
static_assert(offsetof(CompatRingHeader, reserved) == 28);

enum CompatCommandCode : std::uint16_t {
  kCompatPing = 0x0001,      // OK; result: ours is the payload, others' anything
  kCompatPrint = 0x0002,     // the payload goes to the host's log; OK, result 0
  kCompatEnvReset = 0x0100,  // payload: CompatResetFlags
  kCompatEnvStep = 0x0101,   // payload: (ack_blob_id << 16) | action
};
enum CompatResetFlags : std::uint32_t {
  kCompatResetStream = 1,    // answer with OBS seq 0 in the OBS ring and result 0
  kCompatResetMetadata = 2,  // no reset: result is the id of a blob with CompatMetadata
};
enum CompatStatus : std::uint16_t {
  kCompatOk = 0x8000,
  kCompatError = 0x8001,  // result: CompatErrorCode, or the command itself when it is unknown
  kCompatBusy = 0x8002,   // 8 observation blobs unacknowledged, or the heap is full: ask again
};
// `result` of an ERROR response. An unrequested one for kCompatEnvStep says that the host has
// closed the stream.
enum CompatErrorCode : std::uint32_t {
  kCompatErrorStreaming = 1,  // ENV_STEP while streaming
  kCompatErrorAction = 2,     // no such action
  kCompatErrorAck = 3,        // the acknowledged blob is not outstanding
  kCompatErrorNoEpisode = 4,  // no episode is running: send ENV_RESET
  kCompatErrorSeq = 5,        // an ACTION skipped or repeated a seq, or answered a done OBS
  kCompatErrorRestart = 6,    // a new host has attached: send ENV_RESET
};

struct CompatCommand {
  std::uint16_t cmd;    // CompatCommandCode
  std::uint16_t flags;  // 0
  std::uint32_t payload;
  std::uint64_t timestamp_us;  // sender's monotonic clock
};
static_assert(sizeof(CompatCommand) == 16 && offsetof(CompatCommand, flags) == 2);
static_assert(offsetof(CompatCommand, payload) == 4 && offsetof(CompatCommand, timestamp_us) == 8);

struct CompatResponse {
  std::uint16_t status;    // CompatStatus
  std::uint16_t orig_cmd;  // the command answered
  std::uint32_t result;
  std::uint64_t timestamp_us;
};
static_assert(sizeof(CompatResponse) == 16 && offsetof(CompatResponse, orig_cmd) == 2);
static_assert(offsetof(CompatResponse, result) == 4);
static_assert(offsetof(CompatResponse, timestamp_us) == 8);

struct CompatObs {
  std::uint32_t seq;  // 0 at every reset, +1 per step
  float obs[4];
  float reward;    // received on arriving here; 0 at seq 0
  float done;      // 1 after termination and truncation alike, else 0; test > 0.5
  float model_id;  // blob id of the weights, 0 without
};
static_assert(sizeof(CompatObs) == 32 && offsetof(CompatObs, obs) == 4);
static_assert(offsetof(CompatObs, reward) == 20 && offsetof(CompatObs, done) == 24);
static_assert(offsetof(CompatObs, model_id) == 28);

struct CompatAction {
  std::uint32_t seq;  // of the OBS it answers
  std::uint16_t action;
  std::uint16_t flags;    // 0
  std::uint32_t ack_seq;  // last OBS consumed
  std::uint32_t reserved;
};
static_assert(sizeof(CompatAction) == 16 && offsetof(CompatAction, action) == 4);
static_assert(offsetof(CompatAction, flags) == 6 && offsetof(CompatAction, ack_seq) == 8);
static_assert(offsetof(CompatAction, reserved) == 12);

}  // namespace tetrion
