#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/wire/messages.h"

namespace tetrion::wire {

// The only bridge between the messages and their FlatBuffers encoding (proto/control.fbs).
// Stateless; any thread. Bytes from a peer are untrusted: nothing of them is read before the length
// is bounded and the verifier has passed, and no single allocation exceeds kMaxMessageBytes.

enum class DecodeStatus : std::uint8_t {
  kOk = 0,
  kTooShort,       // no room for a root and an identifier
  kTooLong,        // more than kMaxMessageBytes
  kBadIdentifier,  // not a control message of ours
  kUnverified,     // the verifier found an offset, a size or a depth out of bounds
  kWrongVersion,   // verified, but of another protocol version: `have_version` says which
  kUnknownBody,    // verified, but no message of this version
  kBoundExceeded,  // verified, but a vector or a string is longer than messages.h allows
  kBadText,        // verified, but a string is not of the form that messages.h states
};

// A short name for logs and metric labels: "too_long".
const char* Name(DecodeStatus status);
// True when the peer is one of ours, so that an answer makes sense: bytes that fail earlier are
// counted and dropped without a reply.
bool Answerable(DecodeStatus status);

struct DecodeResult {
  DecodeStatus status = DecodeStatus::kUnverified;
  std::uint16_t have_version = 0;  // with kWrongVersion; this build needs kProtocolVersion
  Identity sender;                 // with kOk
  Message message;                 // with kOk
};

// Throws Error(kUsage) naming the field when a vector or a string exceeds its bound; free texts
// (Refused.text, RingGone.reason) are cut instead.
std::vector<std::byte> Encode(const Message& message, const Identity& sender = {});
DecodeResult Decode(std::span<const std::byte> bytes);

// "peer speaks control protocol 2, this build needs 1: use the same Tetrion release everywhere".
std::string WrongVersionText(std::uint16_t have_version);

}  // namespace tetrion::wire
