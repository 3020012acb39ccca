#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "lib/run/run_config.h"

namespace tetrion {

// Where the services of a run listen, as the coordinator wrote it into endpoints.json.
struct Endpoints {
  std::string control;  // ZeroMQ endpoint of the coordinator's control socket
  std::map<std::string, std::string>
      http;                  // service ("coordinator", "learner", "actor-0") -> host:port
  std::int64_t pid = 0;      // of the coordinator that wrote the file; 0: unknown
  std::string run;           // run name
  std::uint64_t run_id = 0;  // 0: unknown
  std::string shm_dir;       // folder of the run's shared regions; empty: unknown
};

// Folder of the run folders where no flag, variable or config file names one: "runs", or what
// TETRION_DEFAULT_RUNS_DIR says, with which ./tetrion keeps runs in its checkout when it is called
// from elsewhere.
std::string DefaultRunsDir();

// How ./tetrion is told of a run, for the lines that it prints: the name, and --runs-dir where that
// is not the default one; quoted for a shell where needed.
std::string RunArguments(const std::string& runs_dir, const std::string& name);

// Throws Error(kUsage) when a new run cannot be called `name`: it is no file name, or "latest".
void CheckRunName(const std::string& name);

// Reads endpoints.json. Throws Error(kTryAgain) when the file is not there (yet) and Error(kConfig)
// when it is not what WriteEndpoints writes.
Endpoints ReadEndpoints(const std::string& path);
void WriteEndpoints(const std::string& path, const Endpoints& endpoints);

// The folder `runs/<name>/` of one run. Owns nothing but paths; copies are cheap.
class RunFolder {
 public:
  // Makes the folder, mode 0700, with checkpoints/ and logs/. Throws Error(kUsage): the run exists
  // (the message has the line that resumes it), the name is no file name, or the path cannot be
  // written (named).
  static RunFolder Create(const std::string& runs_dir, const std::string& name);
  // The same folder, empty unless it was there: what it holds is the caller's to judge, and
  // MakeFolders the caller's to call. The errors of Create, but for a run that exists.
  static RunFolder Ensure(const std::string& runs_dir, const std::string& name);
  // Mode 0700, checkpoints/ and logs/. Throws Error(kUsage).
  void MakeFolders() const;
  // An existing run by name, by "latest" (the run whose config.toml is newest: begun or gone on
  // with last) or, when `name` holds a slash, by path. Throws Error(kUsage) saying what is missing
  // when that is no run, and why where the folder cannot be read (kTryAgain: for now).
  static RunFolder Open(const std::string& runs_dir, const std::string& name);
  // The folder at `path` as it is, unchecked: for services that are started by `--run-folder`
  // before the coordinator has filled it.
  static RunFolder At(const std::string& path);

  const std::string& path() const { return path_; }
  std::string name() const;
  // Whether the run was begun: it has its config.toml. Throws Error where that cannot be told:
  // kUsage, or kTryAgain for what may pass.
  bool HasConfig() const;
  // Whether a coordinator holds the run's lock, the folder's own flock. The look takes the lock for
  // an instant: for somebody who is about to start a coordinator. False where it cannot be told.
  bool InUse() const;
  std::string config_toml() const { return path_ + "/config.toml"; }
  std::string revision() const { return path_ + "/revision"; }
  std::string endpoints_json() const { return path_ + "/endpoints.json"; }
  std::string store() const { return path_ + "/tetrion.db"; }
  std::string metrics_jsonl() const { return path_ + "/metrics.jsonl"; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  // A checkpoint of another run that this one began with; a folder as checkpoints() is.
  std::string initial() const { return path_ + "/initial"; }
  std::string changes_jsonl() const { return path_ + "/changes.jsonl"; }
  std::string logs() const { return path_ + "/logs"; }

  // config.toml: the effective run settings under [run], and the revision.
  void WriteConfig(const RunConfig& config) const;
  // Adds a line for each change to changes.jsonl: {"key", "before", "after", "update" of the
  // learner from which it holds, "unix_s"}, but none for one that is the key's last line already.
  // Durable when it returns. Throws Error, with the file as it was, where that cannot be read:
  // kConfig, or kTryAgain for what may pass.
  void RecordChanges(const std::vector<SettingChange>& changes, std::int64_t update) const;
  // Throws Error(kConfig) naming file and key, kTryAgain where the file cannot be read for now.
  RunConfig ReadConfig() const;

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// "tetris-placement-20260131-174502" (local time).
std::string DefaultRunName(const std::string& env, std::time_t time);

}  // namespace tetrion
