#include "lib/wire/curve_keys.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <sstream>
#include <string_view>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/core/file.h"

namespace tetrion::wire {
namespace {

constexpr std::string_view kPublicHeader = "tetrion curve public key";
constexpr std::string_view kSecretHeader = "tetrion curve secret key";
constexpr std::string_view kZ85 =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
constexpr std::size_t kMaxFileBytes = 1024;  // a key's file has 66

[[noreturn]] void Refuse(const std::string& text) {
  throw Error(ExitCode::kUsage, text);
}

std::string Octal(mode_t mode) {
  std::ostringstream text;
  text << '0' << std::oct << (mode & 0777);
  return text.str();
}

// What a key's file holds; `kind` is "secret" or "public". `problem`: others may read a secret.
struct KeyFile {
  std::string header, key, problem;
};

KeyFile ReadKeyFile(const std::string& path, const std::string& kind) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  char bytes[kMaxFileBytes];
  ssize_t size = -1;
  KeyFile found;
  if (file.valid() && fstat(file.get(), &status) == 0) {
    if (!S_ISREG(status.st_mode))
      Refuse(path + " is no file: give the " + kind + " key's own path");
    if (kind == "secret") found.problem = ModeProblem(status.st_mode, status.st_uid, geteuid());
    size = read(file.get(), bytes, sizeof(bytes));
  }
  if (size < 0) {
    Refuse("cannot read the " + kind + " key " + path + ": " + std::strerror(errno) +
           "; ./tetrion keygen makes keys, and this user (uid " + std::to_string(geteuid()) +
           ") must be able to read the file");
  }
  std::istringstream text(std::string(bytes, static_cast<std::size_t>(size)));
  std::getline(text, found.header);
  std::getline(text, found.key);
  return found;
}

std::string ReadKey(const std::string& path, const std::string& kind, std::string_view header,
                    std::string_view other_header) {
  const KeyFile file = ReadKeyFile(path, kind);
  if (file.header == other_header) {
    Refuse(path + " holds the other half of the keys, here the " + kind + " key is wanted: give " +
           (kind == "secret" ? "NAME.secret" : "NAME.pub"));
  }
  if (!file.problem.empty())
    Refuse("the secret key " + path + " " + file.problem + ": chmod 400 " + path);
  if (file.header != header) {
    Refuse(path + " holds no " + kind + " key: its first line is not \"" + std::string(header) +
           "\"; ./tetrion keygen makes such files");
  }
  try {
    static_cast<void>(DecodeKey(file.key));
  } catch (const Error& error) {
    Refuse(path + " holds no whole " + kind + " key: " + error.what());
  }
  return file.key;
}

void WriteKeyFile(const std::string& path, std::string_view header, const std::string& key,
                  mode_t mode) {
  const std::string text = std::string(header) + "\n" + key + "\n";
  FileReplacement file(path, FileReplacement::kUniqueSuffix);
  if (file.Create(mode) && file.Write(std::as_bytes(std::span(text))) && file.Sync() &&
      file.Place() && file.SyncFolder()) {
    return;
  }
  Refuse("cannot write " + path + ": " + std::strerror(errno) +
         "; the folder must exist and be writable");
}

void RefuseExisting(const std::string& path) {
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0) return;
  Refuse(path +
         " exists and those who trust it would lose it: choose another name, or replace it "
         "with --force");
}

}  // namespace

CurveKeys CurveKeys::Make() {
  char public_key[kKeyChars + 1], secret_key[kKeyChars + 1];
  TETRION_CHECK(zmq_curve_keypair(public_key, secret_key) == 0, "this ZeroMQ has no CURVE");
  return {.public_key = public_key, .secret_key = secret_key};
}

CurveKeys CurveKeys::ReadSecret(const std::string& path) {
  CurveKeys keys{.public_key = {},
                 .secret_key = ReadKey(path, "secret", kSecretHeader, kPublicHeader)};
  char public_key[kKeyChars + 1];
  TETRION_CHECK(zmq_curve_public(public_key, keys.secret_key.c_str()) == 0,
                "a checked secret key has a public key");
  keys.public_key = public_key;
  return keys;
}

std::string ReadPublicKey(const std::string& path) {
  return ReadKey(path, "public", kPublicHeader, kSecretHeader);
}

KeyBytes DecodeKey(const std::string& text) {
  if (text.size() != kKeyChars) {
    Refuse("a key has 40 characters, this one " + std::to_string(text.size()));
  }
  if (text.find_first_not_of(kZ85) != std::string::npos) {
    Refuse("a key is Z85 text, this one has other characters");
  }
  KeyBytes bytes{};
  if (zmq_z85_decode(bytes.data(), text.c_str()) == nullptr) {
    Refuse("a key is Z85 text, these 40 characters are no number");
  }
  return bytes;
}

std::string ModeProblem(mode_t mode, uid_t owner, uid_t reader) {
  const mode_t others = mode & 077;
  const bool roots_for_our_group = others == 040 && owner == 0 && reader != 0;
  if (others == 0 || roots_for_our_group) return "";
  return "is open to other users (mode " + Octal(mode) + ")";
}

void WriteKeyFiles(const std::string& stem, const CurveKeys& keys, bool overwrite) {
  const std::string secret = stem + ".secret", open_half = stem + ".pub";
  if (!overwrite) {
    RefuseExisting(secret);
    RefuseExisting(open_half);
  }
  WriteKeyFile(secret, kSecretHeader, keys.secret_key, 0400);
  WriteKeyFile(open_half, kPublicHeader, keys.public_key, 0644);
}

}  // namespace tetrion::wire
