#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>

namespace tetrion::wire {

// The keys of CURVE, ZeroMQ's encryption, and their files. A key's text is Z85, 40 characters;
// NAME.pub may be read by all, NAME.secret by its owner only:
//
//   tetrion curve public key      (or: tetrion curve secret key)
//   rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7
//
// Functions here throw Error(kUsage) in one sentence: what is wrong, with which file, what to do.

inline constexpr std::size_t kKeyBytes = 32, kKeyChars = 40;
using KeyBytes = std::array<std::uint8_t, kKeyBytes>;

// A process's own keys. The secret never leaves the process: it is in no log, no message and no
// file but its own.
struct CurveKeys {
  std::string public_key, secret_key;  // Z85; both empty: none
  bool empty() const { return secret_key.empty(); }

  static CurveKeys Make();
  // From NAME.secret; the public key follows from it. Refuses a file that others may read.
  static CurveKeys ReadSecret(const std::string& path);
};

// The key in NAME.pub, as Z85 text.
std::string ReadPublicKey(const std::string& path);
// `text`: a key of this file or of a peer's message. Throws Error(kUsage) for anything but 40
// characters of Z85.
KeyBytes DecodeKey(const std::string& text);

// Why a secret's file is open to too many, empty when it is not. The owner may read and write. The
// group may read what belongs to root, and only when we are not root: a Secret that Kubernetes
// mounts for a user has this form, and its reader no other way to it.
std::string ModeProblem(mode_t mode, uid_t owner, uid_t reader);

// Writes `stem`.secret (0400) and `stem`.pub (0644), each whole or not at all. `overwrite`: what is
// there may be replaced; otherwise Error(kUsage).
void WriteKeyFiles(const std::string& stem, const CurveKeys& keys, bool overwrite);

}  // namespace tetrion::wire
