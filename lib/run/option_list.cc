#include "lib/run/option_list.h"

#include <algorithm>
#include <utility>

#include "lib/core/check.h"
#include "lib/run/config_file.h"
#include "lib/run/environment.h"
#include "lib/run/program.h"
#include "lib/run/refuse.h"

namespace tetrion {
namespace {

constexpr std::size_t kHelpColumn = 30;

// Whether both name one setting, with its algorithm or without.
bool SameSetting(const Setting& a, const Setting& b) {
  const std::string of_a = AlgorithmOf(a.key), of_b = AlgorithmOf(b.key);
  return NameOf(a.key) == NameOf(b.key) && (of_a == of_b || of_a.empty() || of_b.empty());
}

// "0 to 1 or 0 to 10".
std::string Either(const std::vector<std::string>& ranges) {
  std::string text;
  for (const std::string& range : ranges) text += (text.empty() ? "" : " or ") + range;
  return text;
}

// Keeps a setting instead of an earlier value of the same one.
void Keep(Setting setting, std::vector<Setting>& given) {
  std::erase_if(given, [&](const Setting& other) { return SameSetting(setting, other); });
  given.push_back(std::move(setting));
}

// Whether the section of a config file has the option.
bool HasOption(const std::string& section, const std::string& algorithm, const OptionSpec& spec) {
  return spec.kind != OptionKind::kPositional && spec.is_run_setting == (section == kRunSection) &&
         (algorithm.empty() || spec.algorithm == algorithm);
}

// "(1 to 64 lanes, default 16)".
std::string Facts(const OptionSpec& spec) {
  if (spec.kind == OptionKind::kFlag) return spec.default_text == "true" ? "(default true)" : "";
  std::string facts = spec.range;
  if (!spec.unit.empty()) facts += (facts.empty() ? "" : " ") + spec.unit;
  if (!spec.default_text.empty())
    facts += (facts.empty() ? "" : ", ") + ("default " + spec.default_text);
  if (spec.required) facts += facts.empty() ? "required" : ", required";
  return facts.empty() ? "" : "(" + facts + ")";
}

std::string HelpLine(const std::string& left, const std::string& help, const std::string& facts) {
  std::string line = "  " + left;
  line += line.size() + 2 > kHelpColumn ? "\n" + std::string(kHelpColumn, ' ')
                                        : std::string(kHelpColumn - line.size(), ' ');
  return line + help + (facts.empty() ? "" : " " + facts) + "\n";
}

std::string Shown(const OptionSpec& spec) {
  if (spec.kind == OptionKind::kPositional) return spec.name;
  if (spec.kind == OptionKind::kFlag) return "--" + spec.name;
  const bool numeric = spec.range.find(" to ") != std::string::npos;
  return "--" + spec.name + (numeric ? " N" : " TEXT");
}

std::string EscapedBars(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string MarkdownRow(const OptionSpec& spec) {
  const std::string name =
      spec.kind == OptionKind::kPositional ? "`" + spec.name + "`" : "`--" + spec.name + "`";
  const std::string range = spec.kind == OptionKind::kFlag ? "flag" : EscapedBars(spec.range);
  return "| " + name + " | " + range + " | " + spec.unit + " | " +
         (spec.default_text.empty() ? "" : "`" + spec.default_text + "`") + " | " +
         EscapedBars(spec.help) + " |\n";
}

constexpr const char* kMarkdownHead =
    "| option | range | unit | default | meaning |\n|---|---|---|---|---|\n";

// The algorithms of the run settings in order, that of the common ones, "", first.
std::vector<std::string> AlgorithmsOf(const OptionList& list) {
  std::vector<std::string> algorithms;
  for (const auto& spec : list.specs) {
    if (spec->is_run_setting &&
        std::find(algorithms.begin(), algorithms.end(), spec->algorithm) == algorithms.end()) {
      algorithms.push_back(spec->algorithm);
    }
  }
  return algorithms;
}

// "each is also read from the environment, ...": the options that are.
std::string VariablesText(const OptionList& list) {
  const auto has_none = [](const auto& spec) {
    return spec->kind != OptionKind::kPositional && !spec->has_variable;
  };
  if (std::none_of(list.specs.begin(), list.specs.end(), has_none)) {
    return "each is also read from the environment, --log-level from TETRION_LOG_LEVEL";
  }
  std::string text;
  int count = list.TakesConfigFile() ? 1 : 0;
  for (const auto& spec : list.specs) {
    if (!HasVariable(*spec)) continue;
    ++count;
    text += (text.empty() ? "--" : ", --") + spec->name + " (" + VariableFor(spec->name) + ")";
  }
  if (list.TakesConfigFile()) text += " and --config (TETRION_CONFIG)";
  return text + (count == 1 ? " is" : " are") + " also read from the environment";
}

// What stands above the settings of an algorithm.
std::string HelpHead(const std::string& algorithm) {
  if (!algorithm.empty()) {
    return "\nSettings of algorithm " + algorithm + " (section [run." + algorithm + "])\n";
  }
  return "\nRun settings (the same for every process of a run; the coordinator owns them;\n"
         "those of learning may be given anew with --resume, docs/options.md has the list)\n";
}

std::string MarkdownHead(const std::string& algorithm) {
  if (!algorithm.empty()) {
    return "\n### Settings of " + algorithm + "\n\nOf a run with `--algo " + algorithm +
           "`: section `[run." + algorithm +
           "]`, or an option of any program that takes the run settings. An option that several "
           "algorithms have names the setting of the run's algorithm.\n";
  }
  return "## Run settings\n\nThe same for every process of a run: section `[run]`, or an option of "
         "any program that says so. Environments have [presets](#presets) of their own, which the "
         "user's settings beat. Where there are two tables, those of the first stay for the run's "
         "life; those of the second may be given anew with `--resume`.\n";
}

// The rows of one table; empty where there is none.
std::string SettingRows(const OptionList& list, const std::string& algorithm, bool may_change) {
  std::string rows;
  for (const auto& spec : list.specs) {
    if (spec->is_run_setting && spec->algorithm == algorithm && spec->may_change == may_change) {
      rows += MarkdownRow(*spec);
    }
  }
  return rows;
}

}  // namespace

void OptionList::Add(OptionSpec spec) {
  for (const auto& other : specs) {
    if (other->name != spec.name) continue;
    TETRION_CHECK(
        !spec.algorithm.empty() && !other->algorithm.empty() && other->algorithm != spec.algorithm,
        "an option is declared twice");
    TETRION_CHECK(other->kind == spec.kind, "algorithms that share an option agree in its kind");
  }
  specs.push_back(std::make_unique<OptionSpec>(std::move(spec)));
}

void OptionList::AddSettings(const std::vector<SettingField>& fields,
                             const std::map<std::string, std::string>& more_help) {
  for (const SettingField& field : fields) {
    const auto more = more_help.find(field.name);
    Add({.name = DashesFor(field.name),
         .help = field.help + (more == more_help.end() ? "" : more->second),
         .default_text = field.value(),
         .range = field.range,
         .unit = field.unit,
         .kind = field.is_flag ? OptionKind::kFlag : OptionKind::kValue,
         .set = field.set,
         .is_run_setting = true,
         .algorithm = field.algorithm,
         .may_change = field.may_change,
         .value = field.value});
  }
}

bool OptionList::TakesConfigFile() const {
  return given != nullptr || IsConfigSection(section);
}

bool OptionList::Given(const std::string& name) const {
  const auto named = [&](const auto& spec) { return spec->name == name; };
  TETRION_CHECK(std::any_of(specs.begin(), specs.end(), named), "no such option");
  return std::any_of(specs.begin(), specs.end(),
                     [&](const auto& spec) { return named(spec) && spec->given; });
}

void OptionList::Set(const std::string& key, const std::string& text, const std::string& where) {
  const std::string algorithm = AlgorithmOf(key), name = DashesFor(NameOf(key));
  OptionSpec* taken = nullptr;
  std::vector<std::string> ranges;  // algorithms may have one and the same
  for (const auto& spec : specs) {
    if (spec->name != name || (!algorithm.empty() && spec->algorithm != algorithm)) continue;
    const std::string range =
        ExpectedText(spec->range, spec->unit, spec->kind == OptionKind::kFlag);
    if (std::find(ranges.begin(), ranges.end(), range) == ranges.end()) ranges.push_back(range);
    if (!spec->set(text)) continue;
    taken = spec.get();
    taken->given = true;
  }
  if (taken == nullptr) Refuse(where + ": expected " + Either(ranges));
  if (!taken->is_run_setting) return;
  Keep({(algorithm.empty() ? "" : algorithm + '.') + KeyFor(name), taken->value()}, *given);
}

void OptionList::SetSection(const std::string& file, const std::string& section,
                            const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    const std::string algorithm = AlgorithmOf(setting.key), name = NameOf(setting.key);
    std::vector<std::string> known;
    for (const auto& spec : specs) {
      if (HasOption(section, algorithm, *spec)) known.push_back(KeyFor(spec->name));
    }
    const std::string where =
        file + ": [" + section + (algorithm.empty() ? "" : "." + algorithm) + "] " + name;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const bool is_of_the_run = std::ranges::any_of(specs, [&](const auto& spec) {
        return spec->is_run_setting && KeyFor(spec->name) == name && spec->algorithm.empty();
      });
      Refuse(where + ": unknown key" +
             (is_of_the_run ? "; it belongs in [" + std::string(kRunSection) + "]"
                            : DidYouMean("", NearestName(name, known))));
    }
    // One file, one value: which of two sections is read first is nothing to build on.
    const auto again = std::find_if(settings.begin(), settings.end(), [&](const Setting& other) {
      return &other != &setting && SameSetting(setting, other);
    });
    if (again != settings.end()) {
      const std::string owner = AlgorithmOf(again->key);
      Refuse(where + " = '" + setting.value + "': is also set in [" + section +
             (owner.empty() ? "" : "." + owner) + "], to '" + again->value + "'; keep one");
    }
    Set(setting.key, setting.value, where + " = '" + setting.value + "'");
  }
}

bool HasVariable(const OptionSpec& spec) {
  return spec.has_variable && spec.kind != OptionKind::kPositional;
}

std::string KeyFor(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string DashesFor(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

std::string DidYouMean(const std::string& prefix, const std::string& nearest) {
  return nearest.empty() ? "" : "; did you mean " + prefix + nearest + "?";
}

std::string NearestName(const std::string& name, const std::vector<std::string>& candidates) {
  std::string nearest;
  std::size_t best = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    // Edit distance, one row of the table at a time.
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= name.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j < row.size(); ++j) {
        const std::size_t replaced = diagonal + (name[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < best) {
      best = row.back();
      nearest = candidate;
    }
  }
  return nearest;
}

std::string VersionText(const std::string& program) {
  return program + " " + Version() + " (revision " + Revision() + ", preset " + Preset() + ")\n";
}

std::string HelpText(const OptionList& list) {
  std::string usage = "Usage: " + list.program + " [options]";
  std::string arguments, options;
  for (const auto& spec : list.specs) {
    const std::string line = HelpLine(Shown(*spec), spec->help, Facts(*spec));
    if (spec->kind == OptionKind::kPositional) {
      usage += spec->required ? " " + spec->name : " [" + spec->name + "]";
      arguments += line;
    } else if (!spec->is_run_setting) {
      options += line;
    }
  }
  if (list.TakesConfigFile()) {
    options +=
        HelpLine("--config FILE", "TOML settings; environment and command line beat them", "");
  }
  options += HelpLine("--help", "this text", "");
  options += HelpLine("--version", "version, revision and preset", "");
  std::string text = list.program + ": " + list.description + "\n\n" + usage + "\n";
  if (!arguments.empty()) text += "\nArguments\n" + arguments;
  text += "\nOptions; " + VariablesText(list) + "; the\ncommand line beats the environment" +
          (list.TakesConfigFile() ? ", which beats the config file\n" : "\n") + options;
  for (const std::string& algorithm : AlgorithmsOf(list)) {
    text += HelpHead(algorithm);
    for (const auto& spec : list.specs) {
      if (spec->is_run_setting && spec->algorithm == algorithm) {
        text += HelpLine(Shown(*spec), spec->help, Facts(*spec));
      }
    }
  }
  return text;
}

std::string MarkdownText(const OptionList& list) {
  std::string text = "## " + list.program + "\n\n" + list.description + "\n\n" + kMarkdownHead;
  bool has_run = false;
  for (const auto& spec : list.specs) {
    has_run = has_run || spec->is_run_setting;
    if (!spec->is_run_setting) text += MarkdownRow(*spec);
  }
  const std::string variables = VariablesText(list);
  if (!variables.starts_with("each")) text += "\nOnly " + variables + ".\n";
  return text + (has_run ? "\nTakes the run settings too.\n" : "");
}

std::string RunMarkdownText(const OptionList& list) {
  std::string text;
  for (const std::string& algorithm : AlgorithmsOf(list)) {
    text += MarkdownHead(algorithm);
    for (const bool may_change : {false, true}) {
      const std::string rows = SettingRows(list, algorithm, may_change);
      if (!rows.empty()) text += "\n" + (kMarkdownHead + rows);
    }
  }
  return text + (list.more_markdown.empty() ? "" : "\n") + list.more_markdown;
}

}  // namespace tetrion
