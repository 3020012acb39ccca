#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/frame/row_layout.h"
#include "lib/replay/host_rows.h"

namespace tetrion::bench {

// Memory for every column of a batch of W windows of R rows, as a gather fills it.
class Columns {
 public:
  Columns(const RowSpec& row, int rows, int windows)
      : cells_(static_cast<std::size_t>(rows * windows) * row.lanes),
        record_(cells_ * row.record_bytes),
        mask_(row.has_mask ? cells_ : 0),
        version_(static_cast<std::size_t>(rows * windows)) {}

  void Gather(const HostRows& rows, const ReadLease& lease) {
    rows.Gather(lease, 0, rows.BatchLanes(lease),
                {.record = record_.data(),
                 .action = action_.data(),
                 .log_prob = log_prob_.data(),
                 .mask = mask_.empty() ? nullptr : mask_.data(),
                 .reward = reward_.data(),
                 .flags = flags_.data(),
                 .cont = cont_.data()});
    rows.GatherVersions(lease, version_.data());
  }
  const std::vector<std::uint32_t>& version() const { return version_; }  // [R, W]

 private:
  const std::size_t cells_;
  std::vector<std::byte> record_;
  std::vector<std::int32_t> action_ = std::vector<std::int32_t>(cells_);
  std::vector<float> log_prob_ = std::vector<float>(cells_);
  std::vector<std::uint64_t> mask_;
  std::vector<float> reward_ = std::vector<float>(cells_), cont_ = std::vector<float>(cells_);
  std::vector<std::uint8_t> flags_ = std::vector<std::uint8_t>(cells_);
  std::vector<std::uint32_t> version_;
};

}  // namespace tetrion::bench
