#include "lib/checkpoint/checkpoint_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "lib/checkpoint/manifest.h"
#include "lib/checkpoint/safetensors.h"
#include "lib/core/error.h"
#include "lib/core/file.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;

constexpr char kManifestName[] = "manifest.json";
constexpr char kTemporarySuffix[] = ".partial";
constexpr char kFileSuffix[] = ".safetensors";
constexpr char kDigits[] = "0123456789";
constexpr int kNameDigits = 12;  // of a file's name at least: its updates
constexpr char kCounterPrefix[] = "counter.";
// Read by one load at most: each after the first means that a save was made meanwhile.
constexpr int kMostLists = 16;
constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kMaxCheckpointBytes = std::uint64_t{16} << 30;

[[noreturn]] void Fail(const std::string& what, const std::string& path) {
  throw Error(ExitCode::kTryAgain, "cannot " + what + " " + path + ": " + std::strerror(errno));
}

// The file's bytes. Throws Error(kConfig) when it is missing, no plain file, larger than `limit` or
// not of the length that the manifest says (`listed`), and Error(kTryAgain) when it cannot be read
// now: it may be whole all the same.
std::vector<std::byte> ReadFile(const std::string& path, std::uint64_t limit,
                                std::optional<std::uint64_t> listed = std::nullopt) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info = {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) {
    if (errno == ELOOP) {
      throw Error(ExitCode::kConfig, path + " is a symbolic link: put the file itself there");
    }
    const bool is_none = errno == ENOENT || errno == ENOTDIR;
    throw Error(is_none ? ExitCode::kConfig : ExitCode::kTryAgain,
                path + " cannot be read: " + std::strerror(errno) +
                    (is_none ? "" : "; if it is lost, move it away: the one before is taken then"));
  }
  if (!S_ISREG(info.st_mode)) throw Error(ExitCode::kConfig, path + " is no plain file");
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (listed && size != *listed) {
    throw Error(ExitCode::kConfig, path + " is corrupt: it has " + std::to_string(size) +
                                       " bytes, the manifest says " + std::to_string(*listed));
  }
  if (size > limit) {
    throw Error(ExitCode::kConfig, path + " is larger than any checkpoint of ours");
  }
  std::vector<std::byte> bytes(size);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) Fail("read", path);
    if (count == 0) throw Error(ExitCode::kConfig, path + " ends early");
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

std::vector<std::byte> BytesOf(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

std::vector<std::byte> FileOf(const TrainerState& state, const CheckpointInfo& info) {
  std::map<std::string, std::string> metadata = MetadataOf(info);
  for (const auto& [name, value] : state.counters) {
    metadata[kCounterPrefix + name] = std::to_string(value);
  }
  return EncodeSafetensors(state.tensors, metadata);
}

// The bytes of one file as they were saved. Throws Error(kConfig) with the reason when it has
// others.
std::vector<std::byte> ReadBytes(const std::string& path, const ManifestEntry& entry) {
  std::vector<std::byte> bytes = ReadFile(path, kMaxCheckpointBytes, entry.bytes);
  if (XXH64(bytes.data(), bytes.size(), 0) != entry.xxhash64) {
    throw Error(ExitCode::kConfig, path + " is corrupt: its xxhash64 differs from the manifest's");
  }
  return bytes;
}

// Reads and verifies one file. Throws Error(kConfig) with the reason when it is unusable.
Checkpoint ReadCheckpoint(const std::string& path, const ManifestEntry& entry) {
  const std::vector<std::byte> bytes = ReadBytes(path, entry);
  SafetensorsFile file = DecodeSafetensors(bytes, path);
  Checkpoint checkpoint{.info = InfoOf(file.metadata, path), .path = path};
  checkpoint.state.tensors = std::move(file.tensors);
  const std::string prefix = kCounterPrefix;
  for (const auto& [key, text] : file.metadata) {
    if (key.compare(0, prefix.size(), prefix) != 0) continue;
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || stop != text.data() + text.size()) {
      throw Error(ExitCode::kConfig, path + " has an unreadable counter " + key);
    }
    checkpoint.state.counters[key.substr(prefix.size())] = value;
  }
  return checkpoint;
}

// A file name that no listed checkpoint has: two saves may be of the same update.
std::string FreshName(std::int64_t updates, const std::vector<ManifestEntry>& listed) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%0*lld", kNameDigits, static_cast<long long>(updates));
  std::string name = std::string(digits) + kFileSuffix;
  for (std::size_t copy = 2; copy <= listed.size() + 2; ++copy) {
    const bool taken = std::any_of(listed.begin(), listed.end(),
                                   [&](const ManifestEntry& entry) { return entry.file == name; });
    if (!taken) break;
    name = std::string(digits) + "-" + std::to_string(copy) + kFileSuffix;
  }
  return name;
}

// Whether FreshName gives such names. Others are copies that a person keeps.
bool IsOurName(const fs::path& file) {
  const std::string stem = file.stem();
  const std::size_t digits = std::min(stem.find_first_not_of(kDigits), stem.size());
  if (file.extension() != kFileSuffix || digits < std::size_t{kNameDigits}) return false;
  if (digits == stem.size()) return true;
  return stem[digits] == '-' && digits + 1 < stem.size() &&
         stem.find_first_not_of(kDigits, digits + 1) == std::string::npos;
}

// The newest `keep_last` entries and the best one.
std::vector<ManifestEntry> Keep(const std::vector<ManifestEntry>& entries, int keep_last) {
  const ManifestEntry* best = BestOf(entries);
  const auto count = static_cast<std::ptrdiff_t>(entries.size());
  std::vector<ManifestEntry> kept;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const ManifestEntry& entry = entries[static_cast<std::size_t>(i)];
    if (i >= count - keep_last || &entry == best) kept.push_back(entry);
  }
  return kept;
}

std::vector<ManifestEntry> NewestFirst(std::vector<ManifestEntry> entries) {
  std::reverse(entries.begin(), entries.end());
  return entries;
}

std::vector<ManifestEntry> BestFirst(std::vector<ManifestEntry> left) {
  std::vector<ManifestEntry> entries;
  while (const ManifestEntry* best = BestOf(left)) {
    entries.push_back(*best);
    left.erase(left.begin() + (best - left.data()));
  }
  return entries;
}

bool Lists(const std::vector<ManifestEntry>& entries, const ManifestEntry& wanted) {
  return std::any_of(entries.begin(), entries.end(), [&](const ManifestEntry& entry) {
    return entry.file == wanted.file && entry.xxhash64 == wanted.xxhash64;
  });
}

// `expected_config_hash`: 0 accepts any.
void CheckConfiguration(const Checkpoint& checkpoint, std::uint64_t expected_config_hash) {
  const std::uint64_t have = checkpoint.info.config_hash;
  if (expected_config_hash == 0 || have == expected_config_hash) return;
  char text[96];
  std::snprintf(text, sizeof text, " has configuration %016llx, this run %016llx",
                static_cast<unsigned long long>(have),
                static_cast<unsigned long long>(expected_config_hash));
  throw Error(ExitCode::kConfig,
              checkpoint.path + text + ": give the settings it was made with, or --force");
}

}  // namespace

CheckpointStore::CheckpointStore(std::string folder, int keep_last)
    : folder_(std::move(folder)), keep_last_(std::max(1, keep_last)), place_(folder_) {}

void CheckpointStore::WriteDurably(const std::string& name, const std::vector<std::byte>& bytes,
                                   std::optional<PausePoint> written) const {
  const auto reached = [&](int step) {
    if (pause_hook_ == nullptr || !written) return;
    pause_hook_(static_cast<PausePoint>(static_cast<int>(*written) + step));
  };
  FileReplacement file(folder_ + "/" + name, kTemporarySuffix);
  if (!file.Create(0600)) Fail("create", file.part_path());
  if (!file.Write(bytes)) Fail("write", file.part_path());
  reached(0);
  if (!file.Sync()) Fail("sync", file.part_path());
  reached(1);
  if (!file.Place()) Fail("rename", file.part_path());
  reached(2);
  if (!file.SyncFolder()) Fail("sync", folder_);
  reached(3);
}

bool CheckpointStore::TakeOver() {
  std::error_code error;
  fs::create_directories(folder_, error);
  return place_.Take();
}

// A file that only cannot be looked at now is not lost.
bool CheckpointStore::IsLost(const ManifestEntry& entry) const {
  struct stat info = {};
  if (::lstat((folder_ + "/" + entry.file).c_str(), &info) != 0) return errno == ENOENT;
  return static_cast<std::uint64_t>(info.st_size) != entry.bytes;
}

// A file that only cannot be read now is not corrupt.
bool CheckpointStore::IsCorrupt(const ManifestEntry& entry) const {
  try {
    (void)ReadBytes(folder_ + "/" + entry.file, entry);
  } catch (const Error& error) {
    return error.code() == ExitCode::kConfig;
  }
  return false;
}

void CheckpointStore::Save(const TrainerState& state, const CheckpointInfo& info) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw Error(ExitCode::kTryAgain, "cannot create " + folder_ + ": " + error.message());
  const FileDescriptor turn = place_.BeginTurn();
  std::vector<ManifestEntry> entries = Manifest();
  if (entries.empty()) {
    WriteDurably(kManifestName, BytesOf(EncodeManifest({})), std::nullopt);
    const std::string parent = folder_ + "/..";  // whose entry of the folder may be new, too
    if (!SyncFolder(parent)) Fail("sync", parent);
  }
  std::erase_if(entries, [this](const ManifestEntry& entry) {
    return IsLost(entry) || (!read_all_ && IsCorrupt(entry));
  });
  read_all_ = true;
  // What a Save that died has left would keep the room that this one may need.
  RemoveUnlisted(entries);
  const std::vector<std::byte> bytes = FileOf(state, info);
  entries.push_back({.file = FreshName(info.updates, entries),
                     .xxhash64 = XXH64(bytes.data(), bytes.size(), 0),
                     .bytes = bytes.size(),
                     .info = info});
  WriteDurably(entries.back().file, bytes, PausePoint::kFileWritten);
  const std::vector<ManifestEntry> kept = Keep(entries, keep_last_);
  WriteDurably(kManifestName, BytesOf(EncodeManifest(kept)), PausePoint::kManifestWritten);
  RemoveUnlisted(kept);
}

void CheckpointStore::RemoveUnlisted(const std::vector<ManifestEntry>& listed) const {
  std::error_code error;
  std::vector<fs::path> unlisted;
  for (fs::directory_iterator file(folder_, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename();
    const bool ours = file->path().extension() == kTemporarySuffix || IsOurName(file->path());
    const bool known = std::any_of(listed.begin(), listed.end(),
                                   [&](const ManifestEntry& entry) { return entry.file == name; });
    if (ours && !known) unlisted.push_back(file->path());
  }
  // A file that cannot be removed now is tried again by the next Save.
  for (const fs::path& path : unlisted) fs::remove(path, error);
}

// Checkpoints without their list, which is there before the first of them: it was lost, or not
// copied with them.
void CheckpointStore::RefuseUnlisted() const {
  std::error_code error;
  for (fs::directory_iterator file(folder_, error), end; !error && file != end;
       file.increment(error)) {
    if (!IsOurName(file->path())) continue;
    throw Error(ExitCode::kConfig, folder_ + " holds checkpoints without their list, " +
                                       kManifestName +
                                       ": put it back, or move the folder away to begin anew");
  }
}

std::vector<ManifestEntry> CheckpointStore::Manifest() const {
  const std::string path = folder_ + "/" + kManifestName;
  std::error_code error;
  if (fs::status(path, error).type() == fs::file_type::not_found) {
    RefuseUnlisted();
    return {};
  }
  // What cannot be looked at is not a missing one: without its list all files would be strangers.
  if (error) throw Error(ExitCode::kTryAgain, "cannot look at " + path + ": " + error.message());
  const std::vector<std::byte> bytes = ReadFile(path, kMaxManifestBytes);
  return DecodeManifest({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

std::optional<Checkpoint> CheckpointStore::LoadFirstGood(Order order,
                                                         std::uint64_t expected_config_hash,
                                                         bool force) const {
  const auto read_list = [&] {
    std::vector<ManifestEntry> list = order(Manifest());
    if (pause_hook_ != nullptr) pause_hook_(PausePoint::kLoadListRead);
    return list;
  };
  std::vector<ManifestEntry> candidates = read_list();
  std::string warning;
  int lists = 1;
  for (std::size_t next = 0; next < candidates.size();) {
    const ManifestEntry entry = candidates[next];
    std::optional<Checkpoint> checkpoint;
    try {
      checkpoint = ReadCheckpoint(folder_ + "/" + entry.file, entry);
    } catch (const Error& bad) {
      // Going on from an older one would lose what this one has as soon as new ones replace it.
      if (bad.code() == ExitCode::kTryAgain) throw;
      if (lists < kMostLists && !Lists(Manifest(), entry)) {
        candidates = read_list();
        ++lists;
        warning.clear();
        next = 0;
        continue;
      }
      warning += (warning.empty() ? "" : "; ") + std::string(bad.what());
      ++next;
      continue;
    }
    CheckConfiguration(*checkpoint, force ? 0 : expected_config_hash);
    checkpoint->warning = warning;
    return checkpoint;
  }
  if (!candidates.empty()) {
    throw Error(ExitCode::kConfig, "no checkpoint in " + folder_ + " is usable: " + warning);
  }
  return std::nullopt;
}

std::optional<Checkpoint> CheckpointStore::LoadNewest(std::uint64_t expected_config_hash,
                                                      bool force) const {
  return LoadFirstGood(NewestFirst, expected_config_hash, force);
}

std::optional<Checkpoint> CheckpointStore::LoadBest(std::uint64_t expected_config_hash,
                                                    bool force) const {
  return LoadFirstGood(BestFirst, expected_config_hash, force);
}

std::vector<std::byte> PolicyBlobOf(const TrainerState& state) {
  return BlobOf(state, {kPlayedPrefix});
}

std::vector<std::byte> BlobOf(const TrainerState& state, const std::vector<std::string>& prefixes) {
  std::vector<std::byte> blob;
  for (const TrainerState::Tensor& tensor : state.tensors) {
    const auto begins = [&](const std::string& prefix) { return tensor.name.starts_with(prefix); };
    if (std::none_of(prefixes.begin(), prefixes.end(), begins)) continue;
    const auto* data = reinterpret_cast<const std::byte*>(tensor.data.data());
    blob.insert(blob.end(), data, data + tensor.data.size() * sizeof(float));
  }
  return blob;
}

}  // namespace tetrion
