#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tetrion::wire {

// The control messages between coordinator, actors and learner as plain structs; proto/control.fbs
// is their encoding, codec.h the only bridge between the two. Bounds stand beside each vector and
// string; sender and receiver enforce them (codec_encode.cc, codec_decode.cc), so that no message
// exceeds 64 KiB.

inline constexpr std::uint16_t kProtocolVersion = 2;
inline constexpr std::size_t kMaxMessageBytes = 64 * 1024;
inline constexpr std::size_t kMaxReports = 1024;       // episodes of one ReportBatch
inline constexpr std::size_t kMaxRanges = 64;          // ranges of one Grant or Abandon
inline constexpr std::size_t kMaxHeldRanges = 128;     // held ranges of one Register
inline constexpr std::size_t kMaxRings = 256;          // worker rings of one actor or one snapshot
inline constexpr std::size_t kMaxStats = 128;          // figures of one heartbeat
inline constexpr std::size_t kMaxGiven = 64;           // settings of one Register
inline constexpr std::size_t kMaxNameBytes = 64;       // names, keys, phases, reasons
inline constexpr std::size_t kMaxValueBytes = 256;     // value of a setting
inline constexpr std::size_t kMaxEndpointBytes = 128;  // host:port; run names too
inline constexpr std::size_t kMaxRingPathBytes = 192;  // kMaxRings of them must fit a message
inline constexpr std::size_t kMaxFolderBytes = 512;
inline constexpr std::size_t kMaxTextBytes = 1024;   // explanation of a refusal
inline constexpr std::size_t kMaxReasonBytes = 256;  // why a ring cannot be used
inline constexpr std::size_t kMaxConfigBytes = 16 * 1024;
inline constexpr std::uint32_t kRangeTokens = 256;  // tokens of one range: the unit of the ledger
inline constexpr std::size_t kRangeBitmapBytes = kRangeTokens / 8;

using Bitmap =
    std::vector<std::uint8_t>;  // kRangeBitmapBytes bytes, bit i of byte i/8: token first_id + i

enum class Role : std::uint8_t { kActor = 1, kLearner = 2 };

// Who speaks, in the envelope of every message. The coordinator accepts a message of a session only
// from the process that the session belongs to, and only when it belongs to its own run; a member
// ends when it meets another run.
struct Identity {
  std::uint64_t run_id = 0;   // run of the sender; 0: a member that has not joined one yet
  std::uint64_t process = 0;  // random number of a member's process, below 2^63; 0: the coordinator
  bool operator==(const Identity&) const = default;
};

// Forms of strings (lib/core/text_forms.h), enforced where a message is decoded: member names,
// setting keys, phases' and figures' names as stated, endpoints host:port, everything else UTF-8
// without control characters.

// How people count sessions: a session's number is its sequence above 32 random bits.
constexpr std::uint64_t SessionSequence(std::uint64_t session) {
  return session >> 32;
}

// A setting the sender was given by its user; the coordinator refuses contradictions.
struct GivenSetting {
  std::string key;    // <= 64 bytes
  std::string value;  // <= 256 bytes
};

// A range the sender still holds tokens of (played but unacknowledged, in play, or waiting).
struct HeldRange {
  std::uint64_t first_id = 0;
  std::uint32_t attempt = 0;
  Bitmap held;
};

// One worker ring an actor has created.
struct RingInfo {
  std::string path;           // absolute, <= kMaxRingPathBytes
  std::uint32_t worker = 0;   // worker number within the actor
  std::int32_t slot = -1;     // replay shard slot; assigned by the coordinator
  std::uint64_t session = 0;  // of its actor; in a RingList 0 once the owner's session has ended
  // In a RingList only: the session that announced the ring or was the last to claim it. A path is
  // used again when an actor comes back after its ring was given up; path and owner together name
  // the ring. 0: not told, by a coordinator that knows paths alone.
  std::uint64_t owner = 0;
};

// First message of every actor and learner, and again after a reconnect.
struct Register {
  Role role = Role::kActor;
  std::string name;                    // a name: "actor-0", "learner"
  std::string revision;                // <= 64 bytes
  std::uint64_t previous_session = 0;  // alive or fenced; 0: a new process
  // With previous_session: of the ranges with first_id < held_below the sender holds exactly these,
  // oldest first; of the others nothing is said.
  std::vector<HeldRange> held;  // <= kMaxHeldRanges
  std::uint64_t held_below = 0;
  std::uint32_t workers = 0;        // actor: how many slots it wants
  std::vector<RingInfo> rings;      // actor, re-registering: rings it still owns, with slots
  std::vector<GivenSetting> given;  // <= kMaxGiven
  std::string http_endpoint;        // host:port of its /metrics, <= 128 bytes; empty: none
  std::string shm_dir;              // <= 512 bytes
  // Learner: where it takes the rows of remote actors, and its public key there.
  std::string rows_endpoint;  // host:port, <= 128 bytes; empty: it takes none
  std::string rows_key;       // <= 64 bytes; empty: none
  // Counts the sender's registrations from 1, repeated ones too: one that arrives after a younger
  // one, by a connection given up since, tells what no longer holds.
  std::uint64_t registration = 0;
};

struct Registered {
  std::uint64_t session = 0;
  std::uint64_t epoch = 0;          // +1 with every start of the coordinator
  std::string run;                  // run name, <= 128 bytes
  std::uint64_t run_id = 0;         // names the run's regions
  std::string run_folder;           // absolute, <= 512 bytes
  std::string run_config;           // ToText(RunConfig), <= 16 KiB
  std::string shm_dir;              // <= 512 bytes
  std::vector<std::int32_t> slots;  // actor: a replay slot per worker
  std::uint32_t version_first = 0;  // learner: versions it may use, [first, limit)
  std::uint32_t version_limit = 0;
  std::uint32_t heartbeat_ms = 1000;
  std::uint32_t session_lease_ms = 10000;
  std::string rows_endpoint;  // actor: as the learner said; empty while there is no learner
  std::string rows_key;
};

enum class RefuseReason : std::uint8_t {
  kProtocolVersion = 1,
  kConfigMismatch = 2,  // text names both values
  kNoSlot = 3,          // text gives the sizes
  kLearnerTaken = 4,    // another learner's session is alive
  kDraining = 5,        // the run is ending
  kMalformed = 6,
  // Since protocol 2. For 7 to 10 the member ends with ExitCode::kTryAgain, else it asks again.
  kOtherRun = 7,         // the member belongs to another run than this coordinator
  kRingUnusable = 8,     // the learner cannot use the member's ring; text says why
  kTooManySessions = 9,  // the process was fenced too often
  kImpossible = 10,      // a number that the run does not allow; text names it
  kSlotsAwaited = 11,    // no slot yet: those of dead workers come free; text gives the sizes
  kStorePaused = 12,     // nothing can be stored now; text says why
};

struct Refused {
  RefuseReason reason = RefuseReason::kMalformed;
  std::string text;  // <= 1024 bytes: what, where, what to do
};

// Actor -> coordinator: give me ranges. Repeating a request number returns the same grant.
struct GrantRequest {
  std::uint64_t session = 0;
  std::uint64_t request = 0;  // 1 in a new session, +1 per new request
  std::uint32_t ranges = 1;   // wanted, 1..kMaxRanges
};

struct GrantedRange {
  std::uint64_t first_id = 0;
  std::uint32_t count = kRangeTokens;
  std::uint32_t attempt = 0;
  std::uint32_t max_steps = 0;
  Bitmap done;  // tokens not to be played again; empty: none
};

struct Grant {
  std::uint64_t session = 0;
  std::uint64_t request = 0;
  std::vector<GrantedRange> ranges;
};

// One finished episode; 32 bytes on the wire.
struct EpisodeReport {
  std::uint64_t token_id = 0;
  std::uint32_t attempt = 0;
  std::uint32_t length_steps = 0;
  std::uint32_t lines = 0;
  std::uint32_t policy_version = 0;
  float episode_return = 0.0F;
  std::uint16_t lane = 0;
  std::uint16_t worker = 0;
};
static_assert(sizeof(EpisodeReport) == 32);

struct ReportBatch {
  std::uint64_t session = 0;
  std::uint64_t batch = 0;  // from 1, kept by the actor until acknowledged
  std::vector<EpisodeReport> episodes;
  // As a heartbeat's when the batch is sent: who accounts the episodes accounts their steps.
  std::uint64_t env_steps = 0;
};

// Sent after the store has committed the batch.
struct ReportAck {
  std::uint64_t session = 0;
  std::uint64_t batch = 0;
  std::uint32_t accepted = 0, duplicates = 0, refused = 0;
};

// Tokens returned unplayed or cut; they become free with attempt + 1.
struct Abandon {
  std::uint64_t session = 0;
  std::uint64_t request = 0;      // number of this message, as for grants; acknowledged by it
  std::string reason;             // "drain", "not_finite", "policy", "reset"; <= 64 bytes
  std::vector<HeldRange> tokens;  // `held` marks the tokens given back
};

struct AbandonAck {
  std::uint64_t session = 0;
  std::uint64_t request = 0;
};

struct Stat {
  std::string name;  // <= 64 bytes; its key in /status and metrics.jsonl
  double value = 0;
};

// Phase of a member that takes no more work and is about to say goodbye.
inline constexpr const char* kPhaseDraining = "draining";

// Every heartbeat_ms; any message renews the session's lease.
struct Heartbeat {
  std::uint64_t session = 0;
  std::string phase;                 // <= 64 bytes: "running", "draining", "waiting for tokens"
  std::uint64_t env_steps = 0;       // actor: actions taken since the process started
  std::uint64_t rings_revision = 0;  // learner: the ring list it has
  std::uint32_t policy_version = 0;  // learner: newest published
  std::uint64_t rows_ingested = 0;   // learner
  std::vector<Stat> stats;
  bool region_held = false;  // learner: it holds its region's lock; a free lock now means death
  // Learner: that region's owner, RegionOwnerId: on another host the coordinator sees another one's
  // lock, or none.
  std::uint64_t region_owner = 0;
};

inline constexpr std::uint64_t kMeanEpisodes = 100;  // the newest, whose means are told

struct HeartbeatAck {
  std::uint64_t session = 0;
  std::uint64_t epoch = 0;
  bool drain = false;               // the run ends: stop taking tokens, report, say goodbye
  std::uint32_t version_limit = 0;  // learner
  std::uint64_t episodes = 0;       // accounted so far
  double mean_return = 0;           // of the last kMeanEpisodes accounted episodes
  double mean_lines = 0;
  std::string rows_endpoint;  // actor: as in Registered; another one after a learner has moved
  std::string rows_key;
};

// Coordinator -> learner: the whole list, whenever it changed and when a heartbeat shows an old
// one.
struct RingList {
  std::uint64_t session = 0;
  std::uint64_t revision = 0;
  std::vector<RingInfo> rings;
};

// Actor -> coordinator: the rings I created for my slots. Answered by RingsAck.
struct RingsReady {
  std::uint64_t session = 0;
  std::vector<RingInfo> rings;
};
struct RingsAck {
  std::uint64_t session = 0;
};

// How a ring ended.
enum class RingEnd : std::uint8_t {
  kClosed = 1,        // its actor closed it
  kOwnerDead = 2,     // its flock was released without a goodbye: the actor's process is gone
  kUnattachable = 3,  // the learner cannot open it; reason says why
  kQuarantined = 4,   // its cursors or rows are impossible; reason says which
};

// Learner -> coordinator: this ring has ended and its slot is free; unless it was unattachable it
// is drained and unlinked. After kOwnerDead the owner's session ends; after kUnattachable and
// kQuarantined its process is refused for good. Repeated until acknowledged by a RingList without
// the ring, that is without its path and owner: of another owner's ring the message says nothing.
struct RingGone {
  std::uint64_t session = 0;
  std::string path;
  RingEnd end = RingEnd::kClosed;
  std::string reason;       // for people, <= kMaxReasonBytes
  std::uint64_t owner = 0;  // as in the RingList; 0: whoever owns the path
};

// The last message of a session; everything outstanding of it becomes free.
struct Goodbye {
  std::uint64_t session = 0;
  std::uint64_t env_steps = 0;
};
struct GoodbyeAck {
  std::uint64_t session = 0;
};

// Nothing of this session is accepted any more: cut lanes, drop tokens, register anew.
struct Fenced {
  std::uint64_t session = 0;
};

using Message = std::variant<Register, Registered, Refused, GrantRequest, Grant, ReportBatch,
                             ReportAck, Abandon, AbandonAck, Heartbeat, HeartbeatAck, RingList,
                             RingsReady, RingsAck, RingGone, Goodbye, GoodbyeAck, Fenced>;

}  // namespace tetrion::wire
