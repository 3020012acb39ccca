#include "lib/run/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/run/config_file.h"
#include "lib/run/program.h"
#include "lib/run/refuse.h"
#include "lib/run/value_text.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;

std::string WithoutTrailingSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// What changes.jsonl holds; nothing where there is none.
std::string EarlierChanges(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file.valid() && errno == ENOENT) return text;
  if (!file.valid() || !ReadRest(file.get(), text)) {
    throw Error(CodeOfFault(errno, ExitCode::kConfig),
                "cannot read " + path + ": " + std::strerror(errno) +
                    "; it holds the run's earlier changes: make it readable, or move it away");
  }
  return text;
}

// The last change of each key in the lines of changes.jsonl; what is no such line is passed over.
std::map<std::string, nlohmann::ordered_json> LastChanges(const std::string& lines) {
  std::map<std::string, nlohmann::ordered_json> last;
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    const auto change = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (change.is_object() && change.contains("key") && change["key"].is_string()) {
      last[change["key"]] = change;
    }
  }
  return last;
}

// "link -> target" of the link on the way to `path` that leads nowhere; "" where there is none.
std::string DanglingLink(const fs::path& path) {
  std::error_code error;
  for (fs::path at = path; at != at.parent_path(); at = at.parent_path()) {
    const bool missing = fs::status(at, error).type() == fs::file_type::not_found;
    if (!missing || !fs::is_symlink(fs::symlink_status(at, error))) continue;
    return at.string() + " -> " + fs::read_symlink(at, error).string();
  }
  return "";
}

[[noreturn]] void CannotMake(const std::string& path, const std::error_code& error) {
  throw Error(CodeOfFault(error.value(), ExitCode::kUsage),
              "cannot make the folder " + path + ": " + error.message() +
                  "; make its parent writable or choose another with --runs-dir");
}

void MakeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (const std::string link = error ? DanglingLink(path) : ""; !link.empty()) {
    Refuse("cannot make the folder " + path + ": a link leads nowhere (" + link +
           "); make the folder that it names or choose another with --runs-dir");
  }
  if (error) CannotMake(path, error);
}

std::string Absolute(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(WithoutTrailingSlash(path), error);
  if (error) Refuse("cannot tell where " + path + " is: " + error.message());
  return absolute;
}

// Where a run of that name lies; makes the folder of the runs.
std::string PathOf(const std::string& runs_dir, const std::string& name) {
  CheckRunName(name);
  MakeFolder(runs_dir);
  return fs::path(Absolute(runs_dir)) / name;
}

bool IsMissing(const std::error_code& error) {
  return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
}

[[noreturn]] void CannotRead(const std::string& path, const std::error_code& error) {
  const bool forbidden = error == std::errc::permission_denied;
  throw Error(CodeOfFault(error.value(), ExitCode::kUsage),
              "cannot read " + path + ": " + error.message() +
                  (forbidden ? "; is the run another user's?" : ""));
}

// What is at `path`, not_found included.
fs::file_type TypeOf(const std::string& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (error && !IsMissing(error)) CannotRead(path, error);
  return type;
}

// False when the folder is there.
bool MakeNew(const std::string& path) {
  std::error_code error;
  if (fs::create_directory(path, error)) return true;
  if (!error) return false;
  CannotMake(path, error);
}

// The run below `runs_dir` whose config.toml was written last. Throws Error(kUsage) when there is
// none, also where that is so since folders could not be read.
std::string LatestRun(const std::string& runs_dir) {
  std::string latest, unread;
  std::error_code unread_error;
  fs::file_time_type newest{};
  std::error_code error;
  for (fs::directory_iterator entry(runs_dir, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code missing;
    const auto written = fs::last_write_time(entry->path() / "config.toml", missing);
    if (missing && !IsMissing(missing)) {
      unread = entry->path();
      unread_error = missing;
    }
    if (missing || (!latest.empty() && written <= newest)) continue;
    newest = written;
    latest = entry->path().string();
  }
  if (error && !IsMissing(error)) CannotRead(runs_dir, error);
  if (!latest.empty()) return latest;
  if (!unread.empty()) CannotRead(unread, unread_error);
  Refuse("no run in " + runs_dir +
         ": none of its folders has a config.toml; start one with ./tetrion up");
}

}  // namespace

void CheckRunName(const std::string& name) {
  if (IsPlainName(name) && name != "latest") return;
  Refuse("run name '" + name + "': expected " + kPlainNames + ", and not 'latest'");
}

std::string DefaultRunsDir() {
  const char* told = std::getenv("TETRION_DEFAULT_RUNS_DIR");
  return told == nullptr || *told == '\0' ? "runs" : told;
}

std::string RunArguments(const std::string& runs_dir, const std::string& name) {
  if (runs_dir == DefaultRunsDir()) return name;
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@";
  std::string quoted = runs_dir;
  if (runs_dir.empty() || runs_dir.find_first_not_of(kPlain) != std::string::npos) {
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4) {
      quoted.replace(at, 1, "'\\''");
    }
    quoted = "'" + quoted + "'";
  }
  return name + " --runs-dir " + quoted;
}

RunFolder RunFolder::Create(const std::string& runs_dir, const std::string& name) {
  const RunFolder folder(PathOf(runs_dir, name));
  if (!MakeNew(folder.path())) {
    Refuse("run " + name + " exists in " + runs_dir + "; to go on with it: ./tetrion up --resume " +
           RunArguments(runs_dir, name));
  }
  folder.MakeFolders();
  return folder;
}

RunFolder RunFolder::Ensure(const std::string& runs_dir, const std::string& name) {
  const RunFolder folder(PathOf(runs_dir, name));
  static_cast<void>(MakeNew(folder.path()));
  return folder;
}

void RunFolder::MakeFolders() const {
  // The control socket lies here: for this user only.
  std::error_code error;
  fs::permissions(path_, fs::perms::owner_all, error);
  if (error) Refuse("cannot close " + path_ + " to other users: " + error.message());
  MakeFolder(checkpoints());
  MakeFolder(logs());
}

RunFolder RunFolder::Open(const std::string& runs_dir, const std::string& name) {
  std::string path = name;
  if (name == "latest") {
    path = LatestRun(runs_dir);
  } else if (name.find('/') == std::string::npos) {
    path = runs_dir + "/" + name;
  }
  const RunFolder folder = At(path);
  if (TypeOf(folder.path()) != fs::file_type::directory) {
    Refuse("no run at " + folder.path() + ": no such folder");
  }
  if (!folder.HasConfig()) Refuse("no run at " + folder.path() + ": config.toml is missing");
  return folder;
}

RunFolder RunFolder::At(const std::string& path) {
  return RunFolder(fs::path(Absolute(path)).lexically_normal());
}

bool RunFolder::HasConfig() const {
  return TypeOf(config_toml()) != fs::file_type::not_found;
}

bool RunFolder::InUse() const {
  const FileDescriptor folder(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.valid() && flock(folder.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::string RunFolder::name() const {
  return fs::path(path_).filename();
}

void RunFolder::WriteConfig(const RunConfig& config) const {
  WriteAtomically(config_toml(), std::string("# Effective settings; written by tetrion ") +
                                     Version() + " (revision " + Revision() + ").\n[run]\n" +
                                     ToText(config));
  WriteAtomically(revision(), std::string(Revision()) + "\n");
}

void RunFolder::RecordChanges(const std::vector<SettingChange>& changes,
                              std::int64_t update) const {
  if (changes.empty()) return;
  std::string text = EarlierChanges(changes_jsonl());
  const std::map<std::string, nlohmann::ordered_json> last = LastChanges(text);
  for (const SettingChange& change : changes) {
    // A death before the settings were written: the resume that follows finds the same change.
    const auto same = last.find(change.key);
    if (same != last.end() && same->second.value("before", "") == change.before &&
        same->second.value("after", "") == change.after) {
      continue;
    }
    const nlohmann::ordered_json line = {{"key", change.key},
                                         {"before", change.before},
                                         {"after", change.after},
                                         {"update", update},
                                         {"unix_s", std::time(nullptr)}};
    text += line.dump() + "\n";
  }
  WriteAtomically(changes_jsonl(), text);
}

RunConfig RunFolder::ReadConfig() const {
  try {
    RunConfig config;
    const ConfigSections sections = ReadConfigFile(config_toml());
    const auto run = sections.find("run");
    if (run == sections.end()) throw Error(ExitCode::kConfig, "the section [run] is missing");
    ApplyAll(run->second, config);
    return config;
  } catch (const Error& error) {
    const bool may_pass = error.code() == ExitCode::kTryAgain;
    throw Error(may_pass ? ExitCode::kTryAgain : ExitCode::kConfig,
                config_toml() + ": " + error.what());
  }
}

std::string DefaultRunName(const std::string& env, std::time_t time) {
  std::tm local{};
  localtime_r(&time, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  return env + "-" + stamp;
}

Endpoints ReadEndpoints(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file && errno != 0 && errno != ENOENT) {
    throw Error(ExitCode::kTryAgain, "cannot read " + path + ": " + std::strerror(errno));
  }
  if (!file) {
    throw Error(ExitCode::kTryAgain, "no coordinator yet: " + path +
                                         " is missing; start "
                                         "tetrion-coordinator for this run");
  }
  std::stringstream text;
  text << file.rdbuf();
  try {
    const auto json = nlohmann::json::parse(text.str());
    Endpoints endpoints;
    endpoints.control = json.at("control").get<std::string>();
    endpoints.http = json.value("http", endpoints.http);
    endpoints.pid = json.value("pid", std::int64_t{0});
    endpoints.run = json.value("run", std::string());
    endpoints.run_id = json.value("run_id", std::uint64_t{0});
    endpoints.shm_dir = json.value("shm_dir", std::string());
    return endpoints;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ExitCode::kConfig, path + ": not an endpoints file: " + error.what() +
                                       "; remove it and start the coordinator again");
  }
}

void WriteEndpoints(const std::string& path, const Endpoints& endpoints) {
  const nlohmann::json json = {{"control", endpoints.control}, {"http", endpoints.http},
                               {"pid", endpoints.pid},         {"run", endpoints.run},
                               {"run_id", endpoints.run_id},   {"shm_dir", endpoints.shm_dir}};
  WriteAtomically(path, json.dump(2) + "\n");
}

}  // namespace tetrion
