#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "lib/wire/rows_messages.h"

namespace tetrion::wire {

// Packs and unpacks the payload of a RowBatch. Keeps zstd's tables between calls. One thread.
class RowsPacker {
 public:
  RowsPacker();
  ~RowsPacker();
  RowsPacker(const RowsPacker&) = delete;
  RowsPacker& operator=(const RowsPacker&) = delete;

  // Packs `rows` into `out` with zstd's fastest ordinary level. kNone, with `out` unspecified, when
  // that would not make them shorter: send them as they are.
  RowsPacking Pack(std::span<const std::byte> rows, std::vector<std::byte>& out);
  // Fills `out`, whose size is that of the rows. False when the payload, which is untrusted, does
  // not unpack to exactly as many bytes; writes no more than that in any case.
  [[nodiscard]] bool Unpack(RowsPacking packing, std::span<const std::byte> payload,
                            std::span<std::byte> out);

 private:
  struct Tables;
  const std::unique_ptr<Tables> tables_;
};

}  // namespace tetrion::wire
