#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/run/setting_fields.h"

namespace tetrion {

// The declarations behind ServiceOptions, what was given of them, and the texts made from them. One
// thread.

enum class OptionKind { kValue, kFlag, kPositional };

struct OptionSpec {
  std::string name;  // without "--"
  std::string help, default_text, range, unit;
  OptionKind kind = OptionKind::kValue;
  bool has_variable = true;  // a positional has none, whatever this says
  bool required = false;
  std::function<bool(const std::string&)> set;  // false: unreadable or out of range

  // Of a run setting.
  bool is_run_setting = false;
  std::string algorithm;               // as SettingField::algorithm
  bool may_change = false;             // when the run is resumed
  std::function<std::string()> value;  // the canonical text of what was set

  bool given = false;
};

struct OptionList {
  std::string program, description;
  std::vector<std::unique_ptr<OptionSpec>> specs;
  std::vector<Setting>* given = nullptr;  // receives run settings, once per key
  std::string section;                    // of the config file, "" without one
  std::string more_markdown;              // what follows the tables of the run settings

  // Whether a config file can hold any of these options.
  bool TakesConfigFile() const;

  // CHECKs that the name is new. Algorithms may share it among them: then one option names the
  // setting of the run's algorithm, and takes what one of them takes; CHECKs that they agree in
  // `kind`, since the command line is split before the algorithm is known.
  void Add(OptionSpec spec);
  // `more_help`: name -> what the setting's help goes on with.
  void AddSettings(const std::vector<SettingField>& fields,
                   const std::map<std::string, std::string>& more_help);
  // Whether the option was given, whichever algorithm took it. CHECKs that there is such an option.
  bool Given(const std::string& name) const;

  // Gives an option its value. `key` is an option's name, or the key of a Setting; `where` begins
  // the complaint. Throws Error(kUsage) when the value is refused.
  void Set(const std::string& key, const std::string& text, const std::string& where);
  // The same with the keys of a config file's section. Throws Error(kUsage) also for a key that the
  // section does not have.
  void SetSection(const std::string& file, const std::string& section,
                  const std::vector<Setting>& settings);
};

// Whether the option is also read from the environment.
bool HasVariable(const OptionSpec& spec);
// An option's key in a config file, underscores for dashes, and the way back.
std::string KeyFor(std::string name);
std::string DashesFor(std::string key);
// The candidate with the smallest edit distance to `name`, empty when none is near (at most a third
// of the letters differ).
std::string NearestName(const std::string& name, const std::vector<std::string>& candidates);
// "; did you mean --lanes?" or nothing.
std::string DidYouMean(const std::string& prefix, const std::string& nearest);
std::string VersionText(const std::string& program);
std::string HelpText(const OptionList& list);
std::string MarkdownText(const OptionList& list);
std::string RunMarkdownText(const OptionList& list);

}  // namespace tetrion
