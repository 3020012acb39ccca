#include "lib/wire/rows_packing.h"

#include <zstd.h>

#include <cstring>

#include "lib/core/check.h"

namespace tetrion::wire {
namespace {

constexpr int kLevel = 1;

}  // namespace

struct RowsPacker::Tables {
  Tables() : pack(ZSTD_createCCtx()), unpack(ZSTD_createDCtx()) {
    TETRION_CHECK(pack != nullptr && unpack != nullptr, "no memory for zstd's tables");
  }
  ~Tables() {
    ZSTD_freeCCtx(pack);
    ZSTD_freeDCtx(unpack);
  }
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  ZSTD_CCtx* const pack;
  ZSTD_DCtx* const unpack;
};

RowsPacker::RowsPacker() : tables_(std::make_unique<Tables>()) {}
RowsPacker::~RowsPacker() = default;

RowsPacking RowsPacker::Pack(std::span<const std::byte> rows, std::vector<std::byte>& out) {
  if (rows.empty()) return RowsPacking::kNone;
  out.resize(rows.size() - 1);  // zstd gives up once it needs more
  const std::size_t bytes =
      ZSTD_compressCCtx(tables_->pack, out.data(), out.size(), rows.data(), rows.size(), kLevel);
  if (ZSTD_isError(bytes) != 0) return RowsPacking::kNone;
  out.resize(bytes);
  return RowsPacking::kZstd;
}

bool RowsPacker::Unpack(RowsPacking packing, std::span<const std::byte> payload,
                        std::span<std::byte> out) {
  if (packing == RowsPacking::kNone) {
    if (payload.size() != out.size()) return false;
    std::memcpy(out.data(), payload.data(), payload.size());
    return true;
  }
  return ZSTD_decompressDCtx(tables_->unpack, out.data(), out.size(), payload.data(),
                             payload.size()) == out.size();
}

}  // namespace tetrion::wire
