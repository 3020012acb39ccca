#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/checkpoint/state.h"
#include "lib/checkpoint/writer_place.h"

namespace tetrion {

// What a checkpoint says about itself; travels in the file's header.
struct CheckpointInfo {
  std::uint64_t config_hash = 0;  // RunConfigHash
  std::string run;
  std::string env;
  std::string network;
  std::int64_t updates = 0;
  std::int64_t policy_version = 0;
  std::int64_t env_steps = 0;  // rows received since the run began, times lanes
  double mean_return = 0;
  bool operator==(const CheckpointInfo&) const = default;
};

struct Checkpoint {
  CheckpointInfo info;
  TrainerState state;
  std::string path;     // the file it came from
  std::string warning;  // not empty: a newer file was unusable, and why
};

// One line of manifest.json.
struct ManifestEntry {
  std::string file;  // name within the folder
  std::uint64_t xxhash64 = 0;
  std::uint64_t bytes = 0;
  CheckpointInfo info;
};

// Where a test can interrupt a save, or a load; see CheckpointStore::SetPauseHook.
enum class PausePoint : int {
  kFileWritten = 0,
  kFileSynced,
  kFileRenamed,
  kFileFolderSynced,
  kManifestWritten,
  kManifestSynced,
  kManifestRenamed,
  kManifestFolderSynced,
  kLoadListRead,  // the files that it names are not read yet
};

// Checkpoints of one run in one folder: <updates>.safetensors files and manifest.json, which names
// the complete ones with their xxhash64, newest last. Every file is written beside its place,
// synced and renamed, the manifest after the file, so that a crash or a full disk at any instant
// leaves the previous checkpoints usable; files of such names outside the manifest are remains and
// are removed by the next Save. Files of other names are a person's and stay. An empty manifest is
// there before the first checkpoint: checkpoints without one are refused and never removed.
//
// Thread role: one thread writes; other processes may read at any time. Processes that may believe
// at the same time that they write take the folder over one after the other (TakeOver).
class CheckpointStore {
 public:
  // Keeps the newest `keep_last` files (at least 1) and the one with the best mean return. Creates
  // nothing before the first Save.
  CheckpointStore(std::string folder, int keep_last);

  // From here on only this process may save here. Before the checkpoint is loaded that it goes on
  // from: a save of the process before it is complete then, or never will be. As
  // WriterPlace::Take.
  bool TakeOver();

  // Blocks for the write and four fsyncs, the first time for seven; after TakeOver also for another
  // process's save. Throws Error(kTryAgain) naming file and cause when the disk refuses; what was
  // saved before stays listed and loadable. Throws PlaceTaken when another process has taken over.
  //
  // An entry whose file is missing, or of another length, is forgotten: it would keep the place of
  // the best one. The first Save reads the files, too, and forgets those of another hash.
  void Save(const TrainerState& state, const CheckpointInfo& info);

  // The newest usable checkpoint; nothing when the folder holds none at all. Files that are
  // missing, corrupt or foreign are passed over and named in Checkpoint::warning, unless a save
  // beside this call has taken them off the list: its new list is read then.
  // `expected_config_hash`: 0 accepts any; a checkpoint of another configuration throws
  // Error(kConfig) unless `force`. Throws Error(kConfig) when checkpoints are listed and none is
  // usable.
  std::optional<Checkpoint> LoadNewest(std::uint64_t expected_config_hash = 0,
                                       bool force = false) const;
  // The same for the checkpoint with the best mean return.
  std::optional<Checkpoint> LoadBest(std::uint64_t expected_config_hash = 0,
                                     bool force = false) const;

  // The manifest's entries, newest last; empty without a manifest. Throws Error(kConfig) when it is
  // not one, or when there are checkpoints without it.
  std::vector<ManifestEntry> Manifest() const;

  // Tests only: called on the saving thread after each step of Save, on the loading one after each
  // reading of the list.
  using PauseHook = void (*)(PausePoint);
  void SetPauseHook(PauseHook hook) { pause_hook_ = hook; }

 private:
  // Entries in the order in which they are tried.
  using Order = std::vector<ManifestEntry> (*)(std::vector<ManifestEntry>);
  std::optional<Checkpoint> LoadFirstGood(Order order, std::uint64_t expected_config_hash,
                                          bool force) const;
  void WriteDurably(const std::string& name, const std::vector<std::byte>& bytes,
                    std::optional<PausePoint> written) const;
  void RefuseUnlisted() const;
  void RemoveUnlisted(const std::vector<ManifestEntry>& listed) const;
  bool IsLost(const ManifestEntry& entry) const;
  bool IsCorrupt(const ManifestEntry& entry) const;

  const std::string folder_;
  const int keep_last_;
  WriterPlace place_;
  bool read_all_ = false;  // the files that were there before the first Save
  PauseHook pause_hook_ = nullptr;
};

// The acting parameters of a saved trainer as the flat f32 buffer Policy::LoadWeights reads: the
// tensors of kPlayedPrefix in their saved order.
std::vector<std::byte> PolicyBlobOf(const TrainerState& state);
// The same of the tensors whose names begin with one of `prefixes`.
std::vector<std::byte> BlobOf(const TrainerState& state, const std::vector<std::string>& prefixes);

}  // namespace tetrion
