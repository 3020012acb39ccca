#include "lib/run/run_config.h"

#include <xxhash.h>

#include <sstream>

#include "lib/core/align.h"
#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/run/run_config_fields.h"
#include "lib/run/value_text.h"

namespace tetrion {
namespace {

// For each field: key, value as text, value as TOML (strings quoted).
struct TextWriter {
  std::string* out;
  bool all = true;  // or only those that stay for the run's life
  template <typename T>
  void Number(const char* key, const T& value, T, T, const char*, FieldHelp help) {
    Line(key, ValueText(value), help);
  }
  void Flag(const char* key, bool value, FieldHelp help) {
    Line(key, value ? "true" : "false", help);
  }
  void Choice(const char* key, const std::string& value, const char*, FieldHelp help) {
    Line(key, '"' + value + '"', help);
  }
  void Text(const char* key, const std::string& value, FieldHelp help) {
    Line(key, '"' + value + '"', help);
  }

 private:
  void Line(const char* key, const std::string& value, FieldHelp help) {
    if (all || !help.may_change) *out += key + (" = " + value) + '\n';
  }
};

struct ValueReader {
  const std::string& wanted;
  std::string value;
  bool found = false;
  bool may_change = false;
  template <typename T>
  void Number(const char* key, const T& field, T, T, const char*, FieldHelp help) {
    Take(key, help, [&] { return ValueText(field); });
  }
  void Flag(const char* key, bool field, FieldHelp help) {
    Take(key, help, [&] { return field ? "true" : "false"; });
  }
  void Choice(const char* key, const std::string& field, const char*, FieldHelp help) {
    Take(key, help, [&] { return field; });
  }
  void Text(const char* key, const std::string& field, FieldHelp help) {
    Take(key, help, [&] { return field; });
  }

 private:
  template <typename F>
  void Take(const char* key, FieldHelp help, F text) {
    if (wanted != key) return;
    value = text();
    may_change = help.may_change;
    found = true;
  }
};

// Sets the field named by the setting; `expected` says what it takes when the value is refused.
struct FieldSetter {
  const Setting& setting;
  bool found = false;
  std::string expected;
  template <typename T>
  void Number(const char* key, T& field, T min, T max, const char*, FieldHelp) {
    if (setting.key != key) return;
    found = true;
    if (!ParseValue(setting.value, min, max, field)) expected = RangeText(min, max);
  }
  void Flag(const char* key, bool& field, FieldHelp) {
    if (setting.key != key) return;
    found = true;
    if (!ParseValue(setting.value, field)) expected = "true or false";
  }
  void Choice(const char* key, std::string& field, const char* allowed, FieldHelp) {
    if (setting.key != key) return;
    found = true;
    if (IsOneOf(setting.value, allowed)) {
      field = setting.value;
    } else {
      expected = std::string("one of ") + allowed;
    }
  }
  void Text(const char* key, std::string& field, FieldHelp) {
    if (setting.key != key) return;
    found = true;
    if (IsPlainName(setting.value)) {
      field = setting.value;
    } else {
      expected = "1 to 64 letters, digits, '.', '_' or '-'";
    }
  }
};

[[noreturn]] void Refuse(const std::string& message) {
  throw Error(ExitCode::kUsage, message);
}

std::string Trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

Setting ParseLine(const std::string& line) {
  const auto equals = line.find('=');
  if (equals == std::string::npos) {
    throw Error(ExitCode::kConfig, "run configuration: no '=' in the line '" + line + "'");
  }
  Setting setting{Trimmed(line.substr(0, equals)), Trimmed(line.substr(equals + 1))};
  std::string& value = setting.value;
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  return setting;
}

ValueReader Read(const std::string& key, const RunConfig& config) {
  ValueReader reader{key};
  VisitRunConfig(config, reader);
  TETRION_CHECK(reader.found, "no such run setting");
  return reader;
}

// A value that asks for derivation contradicts nothing.
bool MeansDerive(const Setting& setting) {
  return setting.value == "auto" ||
         (setting.value == "0" && (setting.key == "max_steps" || setting.key == "replay_rows"));
}

// What `given` would change in `config`.
std::vector<SettingChange> ChangesBy(const std::vector<Setting>& given, const RunConfig& config) {
  std::vector<SettingChange> changes;
  for (const Setting& setting : given) {
    if (MeansDerive(setting)) continue;
    RunConfig here = config;
    Apply(setting, here);
    if (here == config) continue;
    changes.push_back({setting.key, ValueOf(setting.key, config), ValueOf(setting.key, here)});
  }
  return changes;
}

}  // namespace

std::string ToText(const RunConfig& config) {
  std::string text;
  VisitRunConfig(config, TextWriter{&text});
  return text;
}

RunConfig RunConfigFromText(const std::string& text) {
  RunConfig config;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line = Trimmed(line);
    if (line.empty() || line.front() == '#') continue;
    try {
      Apply(ParseLine(line), config);
    } catch (const Error& error) {
      throw Error(ExitCode::kConfig, error.what());
    }
  }
  return config;
}

std::uint64_t RunConfigHash(const RunConfig& config) {
  std::string text;
  VisitRunConfig(config, TextWriter{&text, /*all=*/false});
  return XXH64(text.data(), text.size(), 0);
}

void Apply(const Setting& setting, RunConfig& config) {
  FieldSetter setter{setting};
  VisitRunConfig(config, setter);
  if (!setter.found) Refuse("unknown run setting '" + setting.key + "'");
  if (!setter.expected.empty()) {
    Refuse("run setting " + setting.key + " = '" + setting.value + "': expected " +
           setter.expected);
  }
}

std::string ValueOf(const std::string& key, const RunConfig& config) {
  return Read(key, config).value;
}

bool MayChangeOnResume(const std::string& key) {
  return Read(key, RunConfig()).may_change;
}

std::vector<std::string> Contradictions(const std::vector<Setting>& given,
                                        const RunConfig& config) {
  std::vector<std::string> contradictions;
  for (const SettingChange& change : ChangesBy(given, config)) {
    contradictions.push_back(change.key + ": here " + change.after + ", the run has " +
                             change.before);
  }
  return contradictions;
}

std::vector<SettingChange> ApplyOnResume(const std::vector<Setting>& given, RunConfig& config) {
  const std::vector<SettingChange> changes = ChangesBy(given, config);
  std::vector<Setting> lasting;
  for (const SettingChange& change : changes) {
    if (!MayChangeOnResume(change.key)) lasting.push_back({change.key, change.after});
  }
  if (!lasting.empty()) {
    std::string text;
    for (const std::string& line : Contradictions(lasting, config)) text += line + "; ";
    Refuse("a resumed run keeps its environment and shapes: " + text +
           "leave that out, or start a new run (--init-from RUN takes over the weights)");
  }
  for (const SettingChange& change : changes) Apply({change.key, change.after}, config);
  return changes;
}

void ResolveShapes(RunConfig& config) {
  const int lanes = config.batch_windows * config.lanes;
  if (lanes % config.minibatches != 0) {
    Refuse("run setting minibatches = " + std::to_string(config.minibatches) +
           ": expected a divisor of the batch's batch_windows * lanes = " + std::to_string(lanes));
  }
  if (config.rho_clip == 0 || config.c_clip == 0) {
    Refuse("run settings rho_clip and c_clip: expected more than 0");
  }
  const auto ring_rows = static_cast<std::uint64_t>(config.ring_rows);
  if (!IsPowerOfTwo(ring_rows) || config.ring_rows < 2 * config.commit_stride ||
      config.ring_rows % config.commit_stride != 0) {
    Refuse("run setting ring_rows = " + std::to_string(config.ring_rows) +
           ": expected a power of two, a multiple of commit_stride = " +
           std::to_string(config.commit_stride) + " and at least twice as large");
  }
  const std::int64_t smallest =
      FifoReplayRows(config.window, config.batch_windows, config.commit_stride);
  if (config.replay_rows == 0) config.replay_rows = static_cast<int>(smallest);
  if (config.replay_rows < smallest || config.replay_rows % config.commit_stride != 0) {
    Refuse("run setting replay_rows = " + std::to_string(config.replay_rows) +
           ": expected a multiple of commit_stride = " + std::to_string(config.commit_stride) +
           " and at least 2 * batch_windows * window and the larger of 2 * window and " +
           "commit_stride beside it, so " + std::to_string(smallest) + " or more (0 takes that)");
  }
}

}  // namespace tetrion
