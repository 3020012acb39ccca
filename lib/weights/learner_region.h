#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/core/clock.h"
#include "lib/shm/bell.h"
#include "lib/shm/region.h"
#include "lib/weights/weights_slot.h"

namespace tetrion {

// The one region of a run's learner: the bells that all rings' producers ring, and the weights
// slots. A restarted learner adopts it, so that actors keep their mapping.
//
//   0               4096               4352                    8192
//   | RegionHeader  | ingest BellBlock | inference BellBlock ... | weights slots (weights_slot.h)
//
// Thread role: made and destroyed by one thread; the views it hands out say their own roles and
// must not outlive it.
class LearnerRegion {
 public:
  // Bytes of the region's file for blobs of so many bytes.
  static std::uint64_t BytesFor(std::uint64_t max_blob_bytes);
  // Learner. Throws Error like Region::CreateOrAdopt: kTryAgain when another learner of the run
  // lives, kConfig when an earlier one used another blob size or layout.
  static LearnerRegion CreateOrAdopt(const std::string& dir, std::uint64_t run_id,
                                     std::uint64_t max_blob_bytes, std::uint64_t spec_hash);
  // Actor. nullopt while the region does not exist, is not sealed yet, or is damaged and its
  // learner dead; ask again. Throws Error like Region::Attach for everything else. The learner may
  // be dead (OwnerAlive tells): its successor will adopt this region, or make it anew if it is
  // damaged.
  static std::optional<LearnerRegion> Attach(const std::string& dir, std::uint64_t run_id,
                                             std::uint64_t spec_hash);

  // The ingest thread's bell, rung by the rings of workers that decide for themselves.
  Bell bell() const;
  // The inference thread's bell, rung by streamed workers.
  Bell inference_bell() const;
  WeightsSlotWriter MakeWriter() const;
  // Returns versions above `above` only; see WeightsSlotReader.
  WeightsSlotReader MakeReader(std::uint32_t above = 0) const;
  std::uint64_t max_blob_bytes() const { return max_blob_bytes_; }
  bool OwnerAlive() const { return region_.OwnerAlive(); }
  bool adopted() const { return adopted_; }
  Region& region() { return region_; }
  const Region& region() const { return region_; }

 private:
  LearnerRegion(Region region, std::uint64_t max_blob_bytes, bool adopted);

  Region region_;
  std::uint64_t max_blob_bytes_;
  bool adopted_;
};

// The learner's region as one worker sees it. The region may come later than the worker, and it may
// be removed and made anew (by a clean-up while the learner was down, or by a learner that finds it
// damaged): the watch looks every few milliseconds until it is there, and ten times a second
// whether the path still names it. Each worker maps it for itself, so there is nothing to share.
// Worker thread only.
class LearnerWatch {
 public:
  struct Config {
    std::string shm_dir;
    std::uint64_t run_id = 0;
    std::uint64_t spec_hash = 0;  // of the learner's region
  };
  explicit LearnerWatch(Config config, const Clock& clock = MonotonicClock::Get());

  // The region once it is there, else null. Never blocks; throws Error like LearnerRegion::Attach.
  // `fresh` (may be null) tells whether this very call found it, for the first time or as the
  // successor of one that was removed. Then everything made from an earlier one (bells, readers)
  // points at memory that is gone, and must be replaced before it is used.
  LearnerRegion* Find(bool* fresh = nullptr);
  // A learner was there and its process has ended. One system call.
  bool Gone() const { return region_ && !region_->OwnerAlive(); }

 private:
  bool Look();

  const Config config_;
  const Clock& clock_;
  std::optional<LearnerRegion> region_;
  std::int64_t next_look_ns_ = 0;
};

}  // namespace tetrion
