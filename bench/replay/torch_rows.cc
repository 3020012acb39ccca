#include "bench/replay/torch_rows.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>
#include <torch/version.h>

#include <vector>

#include "lib/core/philox.h"

namespace tetrion::bench {

struct TorchRows::Tensors {
  std::int64_t rows;
  int windows, window_rows;
  std::vector<at::Tensor> columns;  // record, action, log_prob, reward, flags, cont
  at::Tensor index;                 // [windows * window_rows] i64
  std::uint64_t draws = 0;
};

TorchRows::TorchRows(std::uint64_t bytes, std::int64_t record_bytes, int windows, int window_rows)
    : tensors_(new Tensors{.rows = static_cast<std::int64_t>(bytes) / (record_bytes + 17),
                           .windows = windows,
                           .window_rows = window_rows,
                           .columns = {},
                           .index = at::empty({windows * window_rows}, at::kLong)}) {
  at::set_num_threads(1);
  const std::int64_t rows = tensors_->rows;
  tensors_->columns = {at::zeros({rows, record_bytes}, at::kByte),
                       at::zeros({rows}, at::kInt),
                       at::zeros({rows}, at::kFloat),
                       at::zeros({rows}, at::kFloat),
                       at::zeros({rows}, at::kByte),
                       at::zeros({rows}, at::kFloat)};
  for (at::Tensor& column : tensors_->columns) column.fill_(1);  // zeros may share one page
}

TorchRows::~TorchRows() = default;

std::string TorchRows::Name(bool select) const {
  return std::string("torch ") + TORCH_VERSION + (select ? " index_select" : " indexing");
}

double TorchRows::Gather(bool uniform, bool select) {
  Tensors& t = *tensors_;
  auto* index = t.index.data_ptr<std::int64_t>();
  const auto starts = static_cast<std::uint32_t>(t.rows - t.window_rows);
  for (int w = 0; w < t.windows; ++w) {
    const PhiloxBlock draw =
        PhiloxDraw(2, t.draws, static_cast<std::uint32_t>(w), PhiloxPurpose::kSampler);
    const auto in_order = static_cast<std::uint32_t>(
        (t.draws * static_cast<std::uint64_t>(t.windows) + static_cast<std::uint64_t>(w)) *
        static_cast<std::uint64_t>(t.window_rows - 1) % starts);
    const std::int64_t start = uniform ? BoundedDraw(draw.word[0], starts) : in_order;
    for (std::int64_t row = 0; row < t.window_rows; ++row) *index++ = start + row;
  }
  ++t.draws;
  for (const at::Tensor& column : t.columns) {
    const at::Tensor batch = select ? at::index_select(column, 0, t.index)
                                    : at::index(column, {std::optional<at::Tensor>(t.index)});
    if (batch.size(0) != t.index.size(0)) return 0;
  }
  return static_cast<double>(t.index.size(0));
}

}  // namespace tetrion::bench
