#include "lib/setup/preset_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/envs/registry.h"
#include "lib/run/options.h"
#include "lib/run/run_config.h"

namespace tetrion {
namespace {

using Preset = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kHead =
    "## Presets\n\nWhat runs of an environment begin with instead of the defaults above. A row "
    "with a view is for runs with that view, over the environment's row; a column of an algorithm "
    "is for its runs, over the column of all. The user's settings beat every row.\n\n";

// Those that settings belong to in order, that of the common ones, "", first.
std::vector<std::string> AlgorithmsOf(const std::vector<SettingField>& fields) {
  std::vector<std::string> algorithms;
  for (const SettingField& field : fields) {
    if (std::find(algorithms.begin(), algorithms.end(), field.algorithm) == algorithms.end()) {
      algorithms.push_back(field.algorithm);
    }
  }
  return algorithms;
}

// "`--lanes 16`"; a flag has no value unless it is taken back.
std::string OptionText(const Setting& setting, const SettingField& field) {
  const std::string flag = FlagOf(setting);
  const std::size_t sign = flag.find('=');
  if (!field.is_flag) return '`' + flag.substr(0, sign) + ' ' + setting.value + '`';
  return '`' + (setting.value == "true" ? flag.substr(0, sign) : flag) + '`';
}

std::string Row(const std::string& env, const std::string& view, const Preset& preset,
                const std::vector<SettingField>& fields) {
  if (preset.empty()) return "";
  std::string row = "| " + env + " | " + view + " |";
  for (const std::string& algorithm : AlgorithmsOf(fields)) {
    for (const auto& [key, value] : preset) {
      if (AlgorithmOf(key) != algorithm) continue;
      row += ' ' + OptionText({key, value}, FindField(fields, NameOf(key), algorithm));
    }
    row += " |";
  }
  return row + '\n';
}

}  // namespace

std::string PresetsMarkdown() {
  RunConfig usual;
  const std::vector<SettingField> fields = FieldsOf(usual);
  std::string text = std::string(kHead) + "| environment | view |";
  std::string line = "|---|---|";
  for (const std::string& algorithm : AlgorithmsOf(fields)) {
    text += algorithm.empty() ? " all |" : " `--algo " + algorithm + "` |";
    line += "---|";
  }
  text += '\n' + line + '\n';
  for (const EnvEntry& env : Envs()) {
    text += Row(env.name, "", env.preset, fields);
    for (const ViewEntry& view : env.views) text += Row(env.name, view.name, view.preset, fields);
  }
  return text;
}

}  // namespace tetrion
