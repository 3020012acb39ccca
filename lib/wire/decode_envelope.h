// What reading a message has in common in both protocols of lib/wire.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/wire/codec.h"

namespace tetrion::wire {

// Reads hostile bytes. `Protocol` has the envelope's type as Envelope, kVersion, kMaxBytes, and
// HasIdentifier, Verify, Get and Unpack over it; `Result` is its DecodeResult or RowsDecodeResult.
// Of a message that is refused only the status and, once known, the version remain.
template <typename Protocol, typename Result>
Result DecodeEnvelope(std::span<const std::byte> bytes) {
  // A message has an envelope and a body; the room to the limits is for later versions.
  constexpr std::uint32_t kMaxDepth = 8, kMaxTables = 64;
  constexpr std::size_t kMinBytes = 2 * sizeof(std::uint32_t);

  Result result;
  const auto fail = [&result](DecodeStatus status) {
    result.status = status;
    result.message = {};
    result.sender = {};
    return std::move(result);
  };
  if (bytes.size() > Protocol::kMaxBytes) return fail(DecodeStatus::kTooLong);
  if (bytes.size() < kMinBytes) return fail(DecodeStatus::kTooShort);
  // Accessors read whole words; the engine hands out bytes from the middle of its buffers.
  std::vector<std::byte> aligned;
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::uint64_t) != 0) {
    aligned.assign(bytes.begin(), bytes.end());
    bytes = aligned;
  }
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  if (!Protocol::HasIdentifier(data)) return fail(DecodeStatus::kBadIdentifier);
  flatbuffers::Verifier verifier(data, bytes.size(), kMaxDepth, kMaxTables);
  if (!Protocol::Verify(verifier)) return fail(DecodeStatus::kUnverified);
  const typename Protocol::Envelope& envelope = *Protocol::Get(data);
  result.have_version = envelope.protocol_version();
  if (result.have_version != Protocol::kVersion) return fail(DecodeStatus::kWrongVersion);
  result.sender = {envelope.run_id(), envelope.process()};
  result.status = Protocol::Unpack(envelope, result.message);
  if (result.status != DecodeStatus::kOk) return fail(result.status);
  return result;
}

}  // namespace tetrion::wire
