#include "tools/up/remembered_splits.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "lib/core/file.h"
#include "lib/core/log.h"
#include "lib/run/config_file.h"
#include "lib/run/program.h"
#include "lib/setup/inference_choice.h"
#include "lib/setup/trainer_threads.h"
#include "tools/up/slot_plan.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

std::string CostlySettings(RunConfig config) {
  std::string text;
  for (const SettingField& field : FieldsOf(config)) {
    const bool costly = std::ranges::count(kCostlySettings, field.name) > 0;
    if (costly && Concerns(field, config.algo)) text += " " + field.name + "=" + field.value();
  }
  return text;
}

// Of the settings that stay for a run's life, but for those that the best split does not depend on.
std::string HashOfShapes(RunConfig config) {
  const RunConfig usual;
  config.seed = usual.seed;
  config.max_workers = usual.max_workers;
  config.replay_rows = usual.replay_rows;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(RunConfigHash(config)));
  return text;
}

// What a config file says to those that the split is for.
std::string ToldByFile(const UpOptions& options) {
  if (options.config_file.empty()) return "";
  std::string text;
  ConfigSections file = ReadConfigFile(options.config_file);
  for (const char* section : {"actor", "learner"}) {
    for (const Setting& setting : file[section]) {
      text += std::string(" ") + section + "." + setting.key + "=" + setting.value;
    }
  }
  return text.empty() ? "" : "; file:" + text;
}

// nullopt where no run can have it. Throws OrderedJson::exception where it is no split.
std::optional<CoreSplit> SplitOf(const OrderedJson& entry) {
  const auto number = [&](const char* name, int most) {
    const auto value = entry.at(name).get<std::int64_t>();
    return value >= 1 && value <= most ? static_cast<int>(value) : 0;
  };
  const CoreSplit split = {number("workers", kMostWorkers), number("threads", kMostTrainerThreads)};
  if (split.workers == 0 || split.threads == 0) return std::nullopt;
  return split;
}

struct Content {
  OrderedJson splits = OrderedJson::array();
  std::string wrong;     // empty: that is what the file holds; else why nothing of it is known
  bool damaged = false;  // the file was read, but is none of ours
};

Content Read(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() && errno == ENOENT) return {};
  std::string text;
  if (!file.valid() || !ReadRest(file.get(), text)) {
    return {.wrong = "cannot read " + path + ": " + std::strerror(errno)};
  }
  try {
    const OrderedJson splits = OrderedJson::parse(text).at("splits");
    for (const OrderedJson& entry : splits) {
      static_cast<void>(entry.at("for").get<std::string>());
      static_cast<void>(SplitOf(entry));
    }
    if (splits.is_array()) return {.splits = splits};
  } catch (const OrderedJson::exception&) {  // told below
  }
  return {.wrong = path + " is damaged", .damaged = true};
}

bool Replace(const std::string& path, const std::string& text) {
  FileReplacement file(path, FileReplacement::kUniqueSuffix);
  return file.Create(0644) && file.Write(std::as_bytes(std::span(text))) && file.Sync() &&
         file.Place();
}

}  // namespace

std::string ProcessorIn(const std::string& cpuinfo) {
  // Processors of ARM have no name, but numbers.
  for (const char* key : {"model name", "CPU part"}) {
    std::istringstream lines(cpuinfo);
    for (std::string line; std::getline(lines, line);) {
      const auto colon = line.find(": ");
      if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

std::string SplitKey(const UpOptions& options, const RunConfig& config,
                     const std::string& processor, int cores, int most_workers) {
  std::ostringstream key;
  key << processor << ", " << cores << " cores; tetrion " << Version() << " " << Preset() << "; "
      << config.env << " " << config.algo << " " << HashOfShapes(config) << CostlySettings(config)
      << "; " << options.actors << " actors, workers " << options.workers << " of at most "
      << most_workers << ", " << options.GroupsOfWorker() << " groups " << options.inference
      << "; replay on " << options.replay.device << ", updates on " << options.replay.trainer
      << ToldByFile(options);
  return key.str();
}

std::string RememberedSplits::DefaultPath() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const auto is_absolute = [](const char* path) { return path != nullptr && path[0] == '/'; };
  if (is_absolute(cache)) return std::string(cache) + "/tetrion/core-splits.json";
  if (is_absolute(home)) return std::string(home) + "/.cache/tetrion/core-splits.json";
  return "";
}

std::optional<CoreSplit> RememberedSplits::Find(const std::string& key) const {
  if (path_.empty()) return std::nullopt;
  const Content content = Read(path_);
  if (!content.wrong.empty()) log::warn("{}; the cores' split is measured anew", content.wrong);
  for (const OrderedJson& entry : content.splits) {
    if (entry["for"] == key) return SplitOf(entry);
  }
  return std::nullopt;
}

bool RememberedSplits::Remember(const std::string& key, const CoreSplit& split) const {
  if (path_.empty()) {
    log::warn("the cores' split is not remembered: set HOME or XDG_CACHE_HOME");
    return false;
  }
  OrderedJson splits = OrderedJson::array();
  const Content content = Read(path_);
  if (!content.wrong.empty() && !content.damaged) {
    log::warn(
        "the cores' split is not remembered: {}; make it a file that can be read, or set "
        "XDG_CACHE_HOME to another folder",
        content.wrong);
    return false;
  }
  for (const OrderedJson& entry : content.splits) {
    if (entry["for"] != key) splits.push_back(entry);
  }
  splits.push_back({{"for", key}, {"workers", split.workers}, {"threads", split.threads}});
  while (splits.size() > kMost) splits.erase(0);
  const std::string text =
      OrderedJson{{"splits", splits}}.dump(1, ' ', false, OrderedJson::error_handler_t::replace) +
      "\n";
  std::error_code error;
  fs::create_directories(fs::path(path_).parent_path(), error);
  errno = error.value();
  if (error || !Replace(path_, text)) {
    log::warn(
        "the cores' split is not remembered: cannot write {}: {}; make its folder "
        "writable, or set XDG_CACHE_HOME to another",
        path_, std::strerror(errno));
    return false;
  }
  return true;
}

}  // namespace tetrion
