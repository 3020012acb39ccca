#include "lib/run/run_config.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

#include "lib/core/align.h"
#include "lib/core/error.h"
#include "lib/run/refuse.h"
#include "lib/run/replay_need.h"

namespace tetrion {
namespace {

// The algorithms that a run may choose: name and settings of each.
template <typename F>
void ForEachAlgorithm(RunConfig& c, F f) {
  f("vtrace", c.vtrace);
  f("dreamer", c.dreamer);
}

// "a|b".
std::string AlgorithmNames(RunConfig& c) {
  std::string names;
  ForEachAlgorithm(c, [&](const char* name, const auto&) {
    names += (names.empty() ? "" : "|") + std::string(name);
  });
  return names;
}

// "vtrace 32, dreamer 64": a number of each algorithm's.
template <typename F>
std::string OfEachAlgorithm(RunConfig& c, F number) {
  std::string text;
  ForEachAlgorithm(c, [&](const char* name, const auto& settings) {
    text += (text.empty() ? "" : ", ") + std::string(name) + ' ' + std::to_string(number(settings));
  });
  return text;
}

std::string UsualWindows(RunConfig& c) {
  return OfEachAlgorithm(c, [](const auto& settings) { return settings.kWindow; });
}

std::string UsualBatches(RunConfig& c) {
  return OfEachAlgorithm(c, [](const auto& settings) { return settings.kBatchWindows; });
}

void VisitCommon(RunConfig& c, FieldCollector v) {
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  // Environment.
  v.Text("env", c.env, "environment");
  v.Text("view", c.view, "what the network sees; auto takes the environment's default");
  v.Number("seed", c.seed, std::uint64_t{0}, kAny, "", "seed of everything random in the run");
  v.Number("queue_size", c.queue_size, 0, kMostQueuePieces, "pieces",
           "Tetris: pieces in the preview");
  v.Number("max_steps", c.max_steps, 0U, 1U << 30, "steps",
           MayChange("an episode is truncated here; 0: in a resume what the run has, else the "
                     "environment's default"));
  v.Flag("iid_pieces", c.iid_pieces, "Tetris: independent pieces instead of 7-bags");
  v.Number("board_rows", c.board_rows, kFewestBoardRows, kMostBoardRows, "rows",
           JoinedLater("Tetris: rows of the field"));
  v.Flag("spawn_above", c.spawn_above,
         JoinedLater(
             "tetris-placement: pieces appear above the field, and the game ends with one that "
             "leaves cells there"));
  v.Choice("reward", c.reward, "squares|lines",
           JoinedLater("Tetris: what a locked piece that clears n rows earns: squares, 10 n^2 + 1, "
                       "and 0 where the game ends; lines, n"));
  v.Choice("illegal", c.illegal, "terminate|noop", "tetris-placement: what an illegal choice does");
  // Shapes.
  v.Number("lanes", c.lanes, 1, 4096, "lanes", "environments a worker steps together");
  v.Number("max_workers", c.max_workers, 1, kMaxWorkersOfRun, "workers",
           "replay shards, allocated at start: workers that can take part at once");
  v.Number("replay_rows", c.replay_rows, 0, 1 << 24, "rows",
           "replay rows per shard; 0: the algorithm's (vtrace: as few as it can do with; dreamer: "
           "262144 rows of one lane in all shards together)");
  v.Number("ring_rows", c.ring_rows, 2, 1 << 20, "rows", "rows of a worker's ring, a power of two");
  v.Number("commit_stride", c.commit_stride, 1, 1 << 16, "rows",
           "rows published at once; divides ring_rows");
  // Learning, whatever the algorithm.
  v.Choice("algo", c.algo, AlgorithmNames(c), "learning algorithm");
  v.Choice("network", c.network, "auto|scorer|columns|mlp|conv", "network; auto follows the view");
  v.Number("scorer_units", c.scorer_units, 16, 512, "units",
           JoinedLater("units of a hidden layer of networks scorer and columns, a multiple of 16; "
                       "their value's have twice as many"));
  v.Choice("precision", c.precision, "f32|bf16",
           MayChange("factors of hidden layers' products in networks scorer and columns: f32, or "
                     "rounded to bf16 in layers of 64 units and more where the processor gains by "
                     "it (AVX-512 BF16)"));
  v.Number("window", c.window, 0, 1024, "steps",
           ("length of a training window; 0: the algorithm's (" + UsualWindows(c) + ")").c_str());
  v.Number("batch_windows", c.batch_windows, 0, 1024, "windows",
           ("windows of an update, of all lanes of a worker (vtrace) or of one (dreamer); 0: the "
            "algorithm's (" +
            UsualBatches(c) + ")")
               .c_str());
}

// The fields that a run of config.algo has.
std::vector<SettingField> FieldsOfRun(RunConfig& config) {
  std::vector<SettingField> fields = FieldsOf(config);
  std::erase_if(fields, [&](const SettingField& field) { return !Concerns(field, config.algo); });
  return fields;
}

// "discount = 0.997", as in TOML.
std::string LineOf(const SettingField& field) {
  const std::string quote = field.is_text ? "\"" : "";
  return field.name + " = " + quote + field.value() + quote + '\n';
}

// The same as a file has it: TOML's integers are signed, a larger number goes between quotes.
std::string FileLineOf(const SettingField& field) {
  const std::string value = field.value();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool is_integer = error == std::errc() && end == value.data() + value.size();
  const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (field.is_text || !is_integer || number <= most) return LineOf(field);
  return field.name + " = \"" + value + "\"\n";
}

// Calls f with the settings of the run's algorithm.
template <typename F>
void WithAlgorithm(RunConfig& config, F f) {
  ForEachAlgorithm(config, [&](const char* name, const auto& settings) {
    if (name == config.algo) f(settings);
  });
}

void TakeBatchOfAlgorithm(RunConfig& config) {
  WithAlgorithm(config, [&](const auto& settings) {
    if (config.window == 0) config.window = settings.kWindow;
    if (config.batch_windows == 0) config.batch_windows = settings.kBatchWindows;
  });
}

std::string MisfitOf(const VtraceSettings& settings, const RunConfig& c) {
  return settings.Misfit(c.batch_windows * c.lanes);
}

std::string MisfitOf(const DreamerSettings& settings, const RunConfig& c) {
  return settings.Misfit(static_cast<std::uint64_t>(c.window),
                         static_cast<std::uint64_t>(c.replay_rows));
}

void ResolveReplay(const ReplayNeed& need, RunConfig& config) {
  if (config.replay_rows == 0) config.replay_rows = static_cast<int>(need.usual);
  if (config.replay_rows >= need.least && config.replay_rows % config.commit_stride == 0) return;
  Refuse("run setting replay_rows = " + std::to_string(config.replay_rows) +
         ": expected a multiple of commit_stride = " + std::to_string(config.commit_stride) +
         " and at least " + need.made_of + ", so " + std::to_string(need.least) +
         " or more (0 takes " + std::to_string(need.usual) + ")");
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

// A value that asks for derivation contradicts nothing.
bool MeansDerive(const Setting& setting) {
  return setting.value == "auto" ||
         (setting.value == "0" &&
          IsOneOf(setting.key, "max_steps|replay_rows|window|batch_windows"));
}

struct Look {
  std::string name, value;
  bool may_change = false;
};
// What `config` has for a key.
Look LookUp(const std::string& key, RunConfig config) {
  const std::vector<SettingField> fields = FieldsOf(config);
  const SettingField& field = FindField(fields, key, config.algo);
  return {field.name, field.value(), field.may_change};
}

// What `given` would change in `config`, settings of the algorithm without its name.
std::vector<SettingChange> ChangesBy(const std::vector<Setting>& given, const RunConfig& config) {
  std::vector<SettingChange> changes;
  for (const Setting& setting : given) {
    if (MeansDerive(setting)) continue;
    RunConfig here = config;
    Apply(setting, here);
    if (here == config) continue;
    const Look before = LookUp(setting.key, config);
    changes.push_back({before.name, before.value, LookUp(before.name, here).value});
  }
  return changes;
}

}  // namespace

std::vector<SettingField> FieldsOf(RunConfig& config) {
  std::vector<SettingField> fields;
  VisitCommon(config, FieldCollector("", &fields));
  ForEachAlgorithm(config, [&](const char* name, auto& settings) {
    settings.Visit(FieldCollector(name, &fields));
  });
  return fields;
}

std::string ToText(const RunConfig& config) {
  RunConfig read = config;
  std::string text, section;
  for (const SettingField& field : FieldsOfRun(read)) {
    if (field.algorithm != section) {
      section = field.algorithm;
      text += "[run." + section + "]\n";
    }
    text += FileLineOf(field);
  }
  return text;
}

RunConfig RunConfigFromText(const std::string& text) {
  constexpr std::string_view kSection = "[run.";
  std::vector<Setting> settings;
  std::istringstream lines(text);
  std::string prefix;
  RunConfig config;
  try {
    for (std::string line; std::getline(lines, line);) {
      line = Trimmed(line);
      if (line.empty() || line.front() == '#') continue;
      if (line.starts_with(kSection) && line.back() == ']') {
        prefix = line.substr(kSection.size(), line.size() - kSection.size() - 1) + '.';
        continue;
      }
      settings.push_back(ParseLine(line));
      settings.back().key.insert(0, prefix);
    }
    ApplyAll(settings, config);
  } catch (const Error& error) {
    throw Error(ExitCode::kConfig, error.what());
  }
  return config;
}

std::uint64_t RunConfigHash(const RunConfig& config) {
  RunConfig read = config;
  TakeBatchOfAlgorithm(read);
  RunConfig defaults;
  const std::vector<SettingField> usual = FieldsOf(defaults);
  std::string text;
  for (const SettingField& field : FieldsOfRun(read)) {
    // Runs that were made before a field joined have the hash that they had.
    const bool is_new =
        field.joined_later && LineOf(field) == LineOf(FindField(usual, field.name, read.algo));
    if (!field.may_change && !is_new) text += LineOf(field);
  }
  return XXH64(text.data(), text.size(), 0);
}

void Apply(const Setting& setting, RunConfig& config) {
  const std::vector<SettingField> fields = FieldsOf(config);
  const SettingField& field = FindField(fields, setting.key, config.algo);
  if (field.set(setting.value)) return;
  Refuse("run setting " + setting.key + " = '" + setting.value + "': expected " +
         ExpectedText(field.range, field.unit, field.is_flag));
}

void ApplyAll(const std::vector<Setting>& settings, RunConfig& config) {
  for (const Setting& setting : settings) {
    if (setting.key == "algo") Apply(setting, config);
  }
  for (const Setting& setting : settings) Apply(setting, config);
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
    if (!LookUp(change.key, config).may_change) lasting.push_back({change.key, change.after});
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
  TakeBatchOfAlgorithm(config);
  const auto ring_rows = static_cast<std::uint64_t>(config.ring_rows);
  if (!IsPowerOfTwo(ring_rows) || config.ring_rows < 2 * config.commit_stride ||
      config.ring_rows % config.commit_stride != 0) {
    Refuse("run setting ring_rows = " + std::to_string(config.ring_rows) +
           ": expected a power of two, a multiple of commit_stride = " +
           std::to_string(config.commit_stride) + " and at least twice as large");
  }
  if (config.scorer_units % kScorerUnitsStepOfRun != 0) {
    Refuse("run setting scorer_units = " + std::to_string(config.scorer_units) +
           ": expected a multiple of " + std::to_string(kScorerUnitsStepOfRun));
  }
  WithAlgorithm(config, [&](const auto& settings) {
    ResolveReplay(ReplayNeedOf(settings, config), config);
    const std::string misfit = MisfitOf(settings, config);
    if (!misfit.empty()) Refuse("run setting " + misfit);
  });
}

}  // namespace tetrion
