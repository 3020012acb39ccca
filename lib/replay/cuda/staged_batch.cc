#include "lib/replay/cuda/staged_batch.h"

#include <cstring>

#include "lib/core/align.h"
#include "lib/replay/device_rows.h"

namespace tetrion {
namespace {

constexpr std::size_t kPartAlignBytes = 256;

}  // namespace

void StagedBatch::Gather(const ReadLease& lease, int first_lane, int lanes, const RowColumns& out) {
  const RowSpec& spec = rows_.layout().spec;
  const std::size_t cells =
      static_cast<std::size_t>(lease.rows()) * static_cast<std::size_t>(lanes);
  Clear();
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

void StagedBatch::GatherVersions(const ReadLease& lease, std::uint32_t* out) {
  Clear();
  const std::size_t versions =
      Add(out, static_cast<std::size_t>(lease.rows()) * lease.windows().size() * sizeof *out);
  Reserve();
  rows_.GatherVersionsOnDevice(lease, OnDevice<std::uint32_t>(versions));
  Fetch();
}

void StagedBatch::GatherLatents(const ReadLease& lease, const BatchPart& part,
                                const LatentColumns& out) {
  rows_.GatherLatentsOnDevice(lease, part, AddLatents(part, out));
  Fetch();
}

void StagedBatch::ScatterLatents(const ReadLease& lease, const BatchPart& part,
                                 const LatentColumns& in) {
  cuda::Stream& reader = rows_.reader();
  reader.Synchronize();  // the latents written back before are still on their way from here
  const LatentColumns staged = AddLatents(part, {.deter = in.deter, .stoch = in.stoch});
  for (const Part& column : parts_) {
    if (column.host == nullptr) continue;
    std::byte* const pinned = pinned_.data<std::byte>() + column.offset;
    std::memcpy(pinned, column.host, column.bytes);
    cuda::CopyToDevice(device_.data<std::byte>() + column.offset, pinned, column.bytes,
                       cuda::CopyPurpose::kBatch, reader);
  }
  rows_.ScatterLatentsOnDevice(lease, part, staged);
}

void StagedBatch::Clear() {
  parts_.clear();
  used_bytes_ = 0;
}

LatentColumns StagedBatch::AddLatents(const BatchPart& part, const LatentColumns& host) {
  const LatentSpec spec = rows_.LatentsOf(0).spec;
  const std::size_t cells =
      static_cast<std::size_t>(part.rows) * static_cast<std::size_t>(part.lanes);
  Clear();
  const std::size_t deter = Add(host.deter, cells * spec.deter * sizeof *host.deter);
  const std::size_t stoch = Add(host.stoch, cells * spec.stoch);
  const std::size_t valid = Add(host.valid, cells);
  Reserve();
  return {.deter = OnDevice<std::uint16_t>(deter),
          .stoch = OnDevice<std::uint8_t>(stoch),
          .valid = OnDevice<std::uint8_t>(valid)};
}

std::size_t StagedBatch::Add(void* host, std::size_t bytes) {
  parts_.push_back({host, used_bytes_, bytes});
  used_bytes_ += AlignUp(bytes, kPartAlignBytes);
  return parts_.size() - 1;
}

void StagedBatch::Reserve() {
  if (device_.bytes() >= used_bytes_) return;
  device_ = {};  // first: the new memory may not fit beside the old
  device_ = cuda::DeviceBuffer(rows_.device(), used_bytes_, "a batch on its way to the host");
  pinned_ = {};
  pinned_ = cuda::PinnedBuffer(used_bytes_, "a batch on its way to the host");
}

void StagedBatch::Fetch() {
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
