#include "services/learner/weights_shelf.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tetrion::learner {

WeightsShelf::WeightsShelf(WeightsSlotReader reader, const Clock& clock)
    : reader_(reader), clock_(clock) {}

void WeightsShelf::Refresh() {
  const std::int64_t now_ns = clock_.NowNs();
  if (now_ns < next_refresh_ns_) return;
  std::erase_if(downloads_, [&](const auto& download) {
    return now_ns - download.second.asked_ns >= kForgetNs;
  });
  next_refresh_ns_ = now_ns + kRefreshNs;
  std::uint32_t version = 0;
  if (reader_.Read(spare_, version) != WeightsRead::kFresh) return;
  auto blob = std::make_shared<Blob>();
  blob->version = version;
  blob->hash = WeightsHash(spare_, version);
  blob->bytes = std::exchange(spare_, {});
  newest_ = std::move(blob);
}

std::optional<WeightsShelf::Answer> WeightsShelf::Get(std::uint64_t process,
                                                      const wire::WeightsGet& get) {
  std::shared_ptr<const Blob> blob = newest_;
  const auto download = downloads_.find(process);
  if (download != downloads_.end() && download->second.blob->version == get.version) {
    blob = download->second.blob;
  }
  if (blob == nullptr) return Answer{wire::WeightsGone{get.version, 0}, {}};
  if (blob->version != get.version) {
    const bool named = download != downloads_.end() && download->second.blob->version > get.version;
    if (named) blob = download->second.blob;
    downloads_[process] = {.blob = blob, .asked_ns = clock_.NowNs()};
    return Answer{wire::WeightsGone{get.version, blob->version}, {}};
  }
  const std::uint64_t begin = std::uint64_t{get.chunk} * wire::kWeightsChunkBytes;
  if (begin >= blob->bytes.size()) return std::nullopt;
  downloads_[process] = {.blob = blob, .asked_ns = clock_.NowNs()};
  const std::uint64_t bytes =
      std::min<std::uint64_t>(wire::kWeightsChunkBytes, blob->bytes.size() - begin);
  return Answer{wire::WeightsChunk{blob->version, get.chunk, blob->bytes.size(), blob->hash},
                std::span(blob->bytes).subspan(begin, bytes)};
}

std::size_t WeightsShelf::held() const {
  std::set<std::uint32_t> versions;
  if (newest_) versions.insert(newest_->version);
  for (const auto& [process, download] : downloads_) versions.insert(download.blob->version);
  return versions.size();
}

}  // namespace tetrion::learner
