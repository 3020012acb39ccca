#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tetrion::bench {

// A replay of torch tensors, the rival: a tensor a column, [rows, ...], rows of a lane one after
// the other. A batch is its windows' row numbers and one indexing call a column. One thread.
class TorchRows {
 public:
  // Tensors that fill `bytes`; batches of `windows` windows of `window_rows` rows.
  TorchRows(std::uint64_t bytes, std::int64_t record_bytes, int windows, int window_rows);
  ~TorchRows();

  // "torch 2.11.0 index_select", or its advanced indexing.
  std::string Name(bool select) const;
  // Makes a batch of windows in order or anywhere; returns its rows.
  double Gather(bool uniform, bool select);

 private:
  struct Tensors;
  const std::unique_ptr<Tensors> tensors_;
};

}  // namespace tetrion::bench
