#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/wire/codec.h"
#include "lib/wire/rows_messages.h"

namespace tetrion::wire {

// The only bridge between the messages of rows and weights and their FlatBuffers encoding
// (proto/rows.fbs): the first frame of a message. Stateless; any thread. Bytes from a peer are
// untrusted, as in codec.h. What a payload must be to fit its message is judged by its receiver.

struct RowsDecodeResult {
  DecodeStatus status = DecodeStatus::kUnverified;
  std::uint16_t have_version = 0;  // with kWrongVersion; this build needs kRowsProtocolVersion
  Identity sender;                 // with kOk
  RowsMessage message;             // with kOk
};

// Throws Error(kUsage) naming the field when a vector or a string exceeds its bound;
// The texts of refusals are cut instead.
std::vector<std::byte> EncodeRows(const RowsMessage& message, const Identity& sender = {});
RowsDecodeResult DecodeRows(std::span<const std::byte> bytes);

// Whether messages of this kind have a second frame.
bool HasPayload(const RowsMessage& message);

// "peer speaks row protocol 2, this build needs 1: use the same Tetrion release everywhere".
std::string RowsWrongVersionText(std::uint16_t have_version);

}  // namespace tetrion::wire
