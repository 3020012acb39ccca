#include "lib/weights/learner_region.h"

#include <utility>

#include "lib/core/error.h"
#include "lib/shm/shm_dir.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kWeightsOffset = 2 * kRegionHeaderBytes;  // after header and bells' page

}  // namespace

LearnerRegion::LearnerRegion(Region region, std::uint64_t max_blob_bytes, bool adopted)
    : region_(std::move(region)), max_blob_bytes_(max_blob_bytes), adopted_(adopted) {}

LearnerRegion LearnerRegion::CreateOrAdopt(const std::string& dir, std::uint64_t run_id,
                                           std::uint64_t max_blob_bytes, std::uint64_t spec_hash) {
  // Whole cache-line pairs, so that an attaching actor finds the size in the file's.
  const std::uint64_t room_bytes = AlignUp(max_blob_bytes, kCacheLinePairBytes);
  Region region =
      Region::CreateOrAdopt(dir, LearnerName(run_id), RegionKind::kLearner,
                            kWeightsOffset + WeightsSlotBytes(room_bytes), run_id, spec_hash);
  const bool adopted = region.sealed();
  if (!adopted) region.Seal();  // zeros are a silent bell and empty slots
  return LearnerRegion(std::move(region), room_bytes, adopted);
}

std::optional<LearnerRegion> LearnerRegion::Attach(const std::string& dir, std::uint64_t run_id,
                                                   std::uint64_t spec_hash) {
  const std::string path = dir + "/" + LearnerName(run_id);
  std::optional<Region> region =
      Region::AttachIfReady(path, RegionKind::kLearner,
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

}  // namespace tetrion
