#include "lib/replay/cuda/staged_gather.h"

#include <cstring>

#include "lib/core/align.h"
#include "lib/replay/device_rows.h"

namespace tetrion {
namespace {

constexpr std::size_t kPartAlignBytes = 256;

}  // namespace

void StagedGather::Gather(const ReadLease& lease, int first_lane, int lanes,
                          const RowColumns& out) {
  const RowSpec& spec = rows_.layout().spec;
  const std::size_t cells =
      static_cast<std::size_t>(lease.rows()) * static_cast<std::size_t>(lanes);
  parts_.clear();
  used_bytes_ = 0;
  const auto add = [&](void* host, std::size_t cell_bytes) {
    return Add(host, host == nullptr ? 0 : cells * cell_bytes);
  };
  const std::size_t record =
      Add(out.record, out.record == nullptr && out.view == nullptr ? 0 : cells * spec.record_bytes);
  const std::size_t action = add(out.action, sizeof *out.action);
  const std::size_t log_prob = add(out.log_prob, sizeof *out.log_prob);
  const std::size_t mask = add(spec.has_mask ? out.mask : nullptr, sizeof *out.mask);
  const std::size_t reward = add(out.reward, sizeof *out.reward);
  const std::size_t flags = add(out.flags, sizeof *out.flags);
  const std::size_t cont = add(out.cont, sizeof *out.cont);
  Reserve();
  rows_.GatherOnDevice(lease, first_lane, lanes,
                       {.record = OnDevice<std::byte>(record),
                        .action = OnDevice<std::int32_t>(action),
                        .log_prob = OnDevice<float>(log_prob),
                        .mask = OnDevice<std::uint64_t>(mask),
                        .reward = OnDevice<float>(reward),
                        .flags = OnDevice<std::uint8_t>(flags),
                        .cont = OnDevice<float>(cont)});
  Fetch();
  if (out.view != nullptr) {
    out.obs->expand(pinned_.data<std::byte>() + parts_[record].offset,
                    static_cast<std::int64_t>(cells), out.obs->queue_size, out.view);
  }
}

void StagedGather::GatherVersions(const ReadLease& lease, std::uint32_t* out) {
  parts_.clear();
  used_bytes_ = 0;
  const std::size_t versions =
      Add(out, static_cast<std::size_t>(lease.rows()) * lease.windows().size() * sizeof *out);
  Reserve();
  rows_.GatherVersionsOnDevice(lease, OnDevice<std::uint32_t>(versions));
  Fetch();
}

std::size_t StagedGather::Add(void* host, std::size_t bytes) {
  parts_.push_back({host, used_bytes_, bytes});
  used_bytes_ += AlignUp(bytes, kPartAlignBytes);
  return parts_.size() - 1;
}

void StagedGather::Reserve() {
  if (device_.bytes() >= used_bytes_) return;
  device_ = {};  // first: the new memory may not fit beside the old
  device_ = cuda::DeviceBuffer(rows_.device(), used_bytes_, "a batch on its way to the host");
  pinned_ = {};
  pinned_ = cuda::PinnedBuffer(used_bytes_, "a batch on its way to the host");
}

void StagedGather::Fetch() {
  cuda::Stream& reader = rows_.reader();
  for (const Part& part : parts_) {
    if (part.bytes == 0) continue;
    cuda::CopyToHost(pinned_.data<std::byte>() + part.offset,
                     device_.data<std::byte>() + part.offset, part.bytes, cuda::CopyPurpose::kBatch,
                     reader);
  }
  reader.Synchronize();
  for (const Part& part : parts_) {
    if (part.host == nullptr || part.bytes == 0) continue;
    std::memcpy(part.host, pinned_.data<std::byte>() + part.offset, part.bytes);
  }
}

}  // namespace tetrion
