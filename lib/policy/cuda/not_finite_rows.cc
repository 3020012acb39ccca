#include "lib/policy/cuda/not_finite_rows.h"

namespace tetrion {

NotFiniteRows::NotFiniteRows(const cuda::Device& device)
    : count_(device, sizeof(NotFiniteCount), "count of rows that are not finite"),
      copy_(sizeof(NotFiniteCount), "count of rows that are not finite"),
      copied_(device) {
  cuda::Stream stream(device, "clear count");
  cuda::SetBytes(count_.data<NotFiniteCount>(), 0, sizeof(NotFiniteCount), stream);
  stream.Synchronize();
}

void NotFiniteRows::EnqueueCheck(cuda::Stream& stream) {
  if (under_way_) return;
  cuda::CopyToHost(copy_.data<NotFiniteCount>(), count_.data<NotFiniteCount>(),
                   sizeof(NotFiniteCount), cuda::CopyPurpose::kAccount, stream);
  stream.Record(copied_);
  under_way_ = true;
}

std::optional<std::uint64_t> NotFiniteRows::TakeCheck() {
  if (!under_way_ || !copied_.Passed()) return std::nullopt;
  under_way_ = false;
  return copy_.data<NotFiniteCount>()->rows;
}

}  // namespace tetrion
