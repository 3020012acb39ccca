#include "tools/up/config_keys.h"

#include <algorithm>
#include <array>
#include <optional>

#include "lib/run/config_file.h"
#include "lib/run/refuse.h"
#include "lib/run/value_text.h"
#include "lib/setup/trainer_threads.h"

namespace tetrion {
namespace {

struct Key {
  const char* section;
  const char* name;
};

// What `up` plans with: a service is told otherwise, or the plan is wrong.
constexpr std::array kPlanned = {
    Key{"actor", "workers"},          Key{"actor", "inference"}, Key{"actor", "groups"},
    Key{"learner", "resident_lanes"}, Key{"coordinator", "run"}, Key{"coordinator", "runs_dir"},
    Key{"coordinator", "resume"},
};

std::optional<std::string> ValueOf(const ConfigSections& file, const Key& key) {
  const auto section = file.find(key.section);
  if (section == file.end()) return std::nullopt;
  const auto setting = std::find_if(section->second.begin(), section->second.end(),
                                    [&](const Setting& other) { return other.key == key.name; });
  if (setting == section->second.end()) return std::nullopt;
  return setting->value;
}

// "t.toml: [actor] workers = '3': ".
std::string Where(const UpOptions& options, const Key& key, const std::string& value) {
  return options.config_file + ": [" + key.section + "] " + key.name + " = '" + value + "': ";
}

void RefusePlanned(const ConfigSections& file, const UpOptions& options) {
  for (const Key& key : kPlanned) {
    if (const auto value = ValueOf(file, key)) {
      Refuse(Where(options, key, *value) + "is for up to decide: write " + key.name +
             " in [up] instead");
    }
  }
  constexpr Key kName = {"actor", "name"};
  if (const auto value = ValueOf(file, kName)) {
    Refuse(Where(options, kName, *value) +
           "up names its actors itself, actor-0 and on: leave it out");
  }
}

// What [learner] says, where nothing of more weight was given to `up`. One file, one value.
std::optional<std::string> ToTake(const ConfigSections& file, const ServiceOptions& parser,
                                  const UpOptions& options, const Key& key,
                                  const std::string& option) {
  const auto value = ValueOf(file, key);
  if (!value) return std::nullopt;
  if (const auto of_up = ValueOf(file, {"up", key.name})) {
    Refuse(Where(options, key, *value) + "is also set in [up], to '" + *of_up + "'; keep one");
  }
  return parser.Given(option) ? std::nullopt : value;
}

}  // namespace

void HearServiceSections(const ServiceOptions& parser, UpOptions& options) {
  if (options.config_file.empty()) return;
  const ConfigSections file = ReadConfigFile(options.config_file);
  RefusePlanned(file, options);
  const auto taken = [&](const char* name, const char* option) {
    return ToTake(file, parser, options, {"learner", name}, option);
  };
  const auto threads = taken("threads", "threads");
  if (threads && !ParseValue(*threads, 0, kMostTrainerThreads, options.threads.emplace())) {
    Refuse(Where(options, {"learner", "threads"}, *threads) + "is no number from 0 to " +
           std::to_string(kMostTrainerThreads) + "; auto belongs in [up]");
  }
  if (const auto device = taken("device", "device")) options.replay.device = *device;
  if (const auto trainer = taken("trainer_device", "trainer-device")) {
    options.replay.trainer = *trainer;
  }
}

}  // namespace tetrion
