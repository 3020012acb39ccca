#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/wire/codec.h"

// libFuzzer: any bytes end with a status, and what is accepted can be encoded again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto decoded =
      tetrion::wire::Decode(std::as_bytes(std::span<const std::uint8_t>(data, size)));
  if (decoded.status == tetrion::wire::DecodeStatus::kOk) tetrion::wire::Encode(decoded.message);
  return 0;
}
