#include "lib/weights/learner_region.h"

#include <memory>
#include <utility>

#include "lib/core/error.h"
#include "lib/shm/shm_dir.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kWeightsOffset = 2 * kRegionHeaderBytes;  // after header and bells' page

constexpr std::int64_t kLookEveryNs = 5 * kNanosPerMilli;
// While it is there: two system calls, against a worker's thousands of rows.
constexpr std::int64_t kLookAgainEveryNs = 100 * kNanosPerMilli;

// Region::AttachIfReady, but nullopt also for a dead learner's region that is damaged: a successor
// makes it anew, under the folder's lock.
std::optional<Region> AttachUnlessDamaged(const std::string& dir, const std::string& name,
                                          const AttachNeeds& needs) {
  const std::string path = dir + "/" + name;
  try {
    return Region::AttachIfReady(path, RegionKind::kLearner, needs);
  } catch (const DamagedRegion&) {
    const std::unique_ptr<ShmDirLock> lock = ShmDirLock::Try(dir);
    const std::optional<RegionHold> hold = LookAtRegion(path);
    if (lock == nullptr || !hold || !hold->held) return std::nullopt;
  }
  // A live owner: a successor has just made it anew, or its region is damaged, which throws.
  return Region::AttachIfReady(path, RegionKind::kLearner, needs);
}

}  // namespace

LearnerRegion::LearnerRegion(Region region, std::uint64_t max_blob_bytes, bool adopted)
    : region_(std::move(region)), max_blob_bytes_(max_blob_bytes), adopted_(adopted) {}

std::uint64_t LearnerRegion::BytesFor(std::uint64_t max_blob_bytes) {
  return kWeightsOffset + WeightsSlotBytes(WeightsRoomBytes(max_blob_bytes));
}

LearnerRegion LearnerRegion::CreateOrAdopt(const std::string& dir, std::uint64_t run_id,
                                           std::uint64_t max_blob_bytes, std::uint64_t spec_hash) {
  // An attaching actor finds this in the size of the file.
  const std::uint64_t room_bytes = WeightsRoomBytes(max_blob_bytes);
  Region region = Region::CreateOrAdopt(dir, LearnerName(run_id), RegionKind::kLearner,
                                        BytesFor(max_blob_bytes), run_id, spec_hash);
  const bool adopted = region.sealed();
  if (!adopted) region.Seal();  // zeros are a silent bell and empty slots
  return LearnerRegion(std::move(region), room_bytes, adopted);
}

std::optional<LearnerRegion> LearnerRegion::Attach(const std::string& dir, std::uint64_t run_id,
                                                   std::uint64_t spec_hash) {
  std::optional<Region> region =
      AttachUnlessDamaged(dir, LearnerName(run_id),
                          {.run_id = run_id,
                           .spec_hash = spec_hash,
                           .min_bytes = kWeightsOffset + WeightsSlotBytes(0)});
  if (!region) return std::nullopt;
  const std::uint64_t room_bytes =
      (region->size() - kWeightsOffset - WeightsSlotBytes(0)) / kWeightsSlots;
  return LearnerRegion(std::move(*region), room_bytes & ~(kCacheLinePairBytes - 1), false);
}

Bell LearnerRegion::bell() const {
  return Bell(reinterpret_cast<BellBlock*>(region_.payload()));
}

Bell LearnerRegion::inference_bell() const {
  return Bell(reinterpret_cast<BellBlock*>(region_.payload()) + 1);
}

WeightsSlotWriter LearnerRegion::MakeWriter() const {
  return WeightsSlotWriter(region_.data() + kWeightsOffset, max_blob_bytes_);
}

WeightsSlotReader LearnerRegion::MakeReader(std::uint32_t above) const {
  return WeightsSlotReader(region_.data() + kWeightsOffset, max_blob_bytes_, above);
}

LearnerWatch::LearnerWatch(Config config, const Clock& clock)
    : config_(std::move(config)), clock_(clock) {}

LearnerRegion* LearnerWatch::Find(bool* fresh) {
  const bool found = Look();
  if (fresh != nullptr) *fresh = found;
  return region_ ? &*region_ : nullptr;
}

// Whether this look found a region to take. One that was removed stays until its successor is
// there: its weights serve meanwhile.
bool LearnerWatch::Look() {
  const std::int64_t now_ns = clock_.NowNs();
  if (now_ns < next_look_ns_) return false;
  if (region_ && region_->region().Named()) {
    next_look_ns_ = now_ns + kLookAgainEveryNs;
    return false;
  }
  next_look_ns_ = now_ns + kLookEveryNs;
  std::optional<LearnerRegion> found =
      LearnerRegion::Attach(config_.shm_dir, config_.run_id, config_.spec_hash);
  if (!found) return false;
  region_ = std::move(found);
  return true;
}

}  // namespace tetrion
