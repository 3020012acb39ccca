#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class Option;
}

namespace tetrion {

// The declarations behind ServiceOptions and the texts that are made from them.

enum class OptionKind { kValue, kFlag, kPositional };

struct OptionSpec {
  std::string name;  // without "--"
  std::string help, default_text, range, unit;
  OptionKind kind = OptionKind::kValue;
  bool required = false;
  bool is_run_setting = false;
  bool may_change = false;                      // of a run setting: when the run is resumed
  std::function<bool(const std::string&)> set;  // false: unreadable or out of range

  // State of parsing.
  std::string from_command_line;
  CLI::Option* option = nullptr;  // the parser's, during Parse only
  bool given = false;
  std::string current;  // what was given

  // "1 to 64 lanes", "one of text|json", "true or false".
  std::string Expected() const;
};

struct OptionList {
  std::string program, description;
  std::vector<std::unique_ptr<OptionSpec>> specs;

  // CHECKs that the name is new.
  void Add(OptionSpec spec);
  OptionSpec* Find(const std::string& name) const;
};

// The option's key in a config file: underscores for dashes.
std::string KeyFor(std::string name);
// "; did you mean --lanes?" or nothing.
std::string DidYouMean(const std::string& prefix, const std::string& nearest);
std::string VersionText(const std::string& program);
std::string HelpText(const OptionList& list);
std::string MarkdownText(const OptionList& list);
std::string RunMarkdownText(const OptionList& list);

}  // namespace tetrion
