#include "services/actor/weights_pull.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tetrion::actor {
namespace {

constexpr std::uint32_t kMaxWindowChunks = 4;  // asked for ahead: 128 KiB on their way
// What is on its way behind the first chunk may take the line for so long: an answer to rows waits
// for it. At 3 Mbit/s one chunk of 32 KiB takes 87 ms, and two are asked for; at 1 Mbit/s one.
constexpr std::int64_t kAheadNs = 100 * kNanosPerMilli;
// What does not come for so long is asked for again. Longer where chunks take longer, so that a
// slow network does not carry them twice; shorter than the learner's WeightsShelf::kForgetNs.
constexpr std::int64_t kPatienceNs = kNanosPerSecond;
constexpr std::int64_t kMaxPatienceNs = 8 * kNanosPerSecond;
constexpr std::int64_t kAfterRefusalNs = kNanosPerSecond;

}  // namespace

WeightsPull::WeightsPull(std::uint64_t blob_bytes, WeightsInbox& inbox, const Clock& clock)
    : blob_bytes_(blob_bytes),
      chunks_(static_cast<std::uint32_t>((blob_bytes + wire::kWeightsChunkBytes - 1) /
                                         wire::kWeightsChunkBytes)),
      inbox_(inbox),
      clock_(clock),
      patience_ns_(kPatienceNs),
      window_chunks_(kMaxWindowChunks) {}

void WeightsPull::OnNewest(std::uint32_t version) {
  inbox_.TellPublished(version);
  if (!Pulling() && version > inbox_.version()) Begin(version);
}

void WeightsPull::Begin(std::uint32_t version) {
  if (blob_bytes_ == 0 || clock_.NowNs() < begin_due_ns_) return;
  version_ = version;
  bytes_.resize(blob_bytes_);
  have_ = 0;
  AskAgain();
  progress_ns_ = clock_.NowNs();
}

void WeightsPull::AskAgain() {
  asked_ = 0;
  followed_ = false;
}

// Two at least now and then: only a chunk that follows another tells how long the line takes for
// one, whatever the round trip.
std::uint32_t WeightsPull::WindowChunks() const {
  return have_ % kMaxWindowChunks == 0 ? std::max(window_chunks_, 2U) : window_chunks_;
}

int WeightsPull::Send(RowsPort& port) {
  if (!Pulling()) return 0;
  if (clock_.NowNs() - progress_ns_ >= patience_ns_) {
    AskAgain();
    patience_ns_ = std::min(2 * patience_ns_, kMaxPatienceNs);
    progress_ns_ = clock_.NowNs();
  }
  int sent = 0;
  asked_ = std::max(asked_, have_);
  while (asked_ < std::min(have_ + WindowChunks(), chunks_)) {
    if (!port.Send(wire::WeightsGet{.version = version_, .chunk = asked_})) break;
    ++asked_;
    ++sent;
  }
  return sent;
}

std::uint64_t WeightsPull::ChunkBytes(std::uint32_t chunk) const {
  const std::uint64_t begin = chunk * std::uint64_t{wire::kWeightsChunkBytes};
  return std::min<std::uint64_t>(wire::kWeightsChunkBytes, blob_bytes_ - begin);
}

// Chunks come in the order in which they were asked for; one that is missing is asked for again
// with all that follow it.
void WeightsPull::On(const wire::WeightsChunk& chunk, std::span<const std::byte> payload) {
  if (!Pulling() || chunk.version != version_ || chunk.chunk != have_) return;
  if (chunk.blob_bytes != blob_bytes_ || payload.size() != ChunkBytes(chunk.chunk) ||
      (have_ > 0 && chunk.hash != hash_)) {
    Refuse();
    return;
  }
  hash_ = chunk.hash;
  std::memcpy(bytes_.data() + chunk.chunk * std::uint64_t{wire::kWeightsChunkBytes}, payload.data(),
              payload.size());
  ++have_;
  const std::int64_t took_ns = clock_.NowNs() - std::exchange(progress_ns_, clock_.NowNs());
  patience_ns_ = std::clamp(2 * took_ns, kPatienceNs, kMaxPatienceNs);
  if (followed_) {
    // The shorter of two: chunks that come in bursts have a round trip between the bursts.
    const std::int64_t gap_ns = std::min(took_ns, std::exchange(gap_ns_, took_ns));
    const auto ahead = static_cast<std::uint32_t>(
        std::min<std::int64_t>(kAheadNs / std::max<std::int64_t>(gap_ns, 1), kMaxWindowChunks));
    window_chunks_ = std::min(1 + ahead, kMaxWindowChunks);
  }
  followed_ = asked_ > have_;
  if (have_ == chunks_) Finish();
}

void WeightsPull::Finish() {
  const std::uint32_t version = std::exchange(version_, 0);
  if (inbox_.Put(version, std::move(bytes_), hash_) == WeightsInbox::PutResult::kTaken) {
    ++stats_.versions;
  } else {
    Refuse();
  }
  bytes_ = {};
}

void WeightsPull::Refuse() {
  version_ = 0;
  ++stats_.refused;
  begin_due_ns_ = clock_.NowNs() + kAfterRefusalNs;
}

void WeightsPull::On(const wire::WeightsRefused& refused) {
  if (!Pulling() || refused.version != version_) return;
  version_ = 0;
  begin_due_ns_ = clock_.NowNs() + kAfterRefusalNs;
}

void WeightsPull::On(const wire::WeightsGone& gone) {
  if (!Pulling() || gone.version != version_) return;
  version_ = 0;
  if (gone.newest != gone.version) OnNewest(gone.newest);
}

}  // namespace tetrion::actor
