#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "lib/core/log.h"
#include "lib/run/run_config.h"
#include "lib/run/value_text.h"

namespace tetrion {

// A program's options: each is declared once with help, range, default and unit; command line,
// environment, config file, --help and docs/options.md all follow from that declaration.
//
// Precedence: command line, then the environment (TETRION_RING_ROWS is --ring-rows; arguments
// without a name have no variable; see ReadVariablesOf), then the config file (`--config FILE`,
// TOML with the sections [run], [run.ALGORITHM], [coordinator], [actor], [learner], [up]), then the
// default, which is what the bound variable holds when it is declared. A program reads its own
// section and the run's; keys there that it does not know are errors. Keys are option names with
// underscores. Variables of other programs' options are left alone, one that no program reads is
// warned of. Every program has --help and --version; --config have those with run settings or with
// a section of the file.
//
// One thread; bound variables belong to the caller and must outlive Parse.
class ServiceOptions {
 public:
  // `program`: "tetrion-actor". `section`: its section of the config file, "" without one.
  ServiceOptions(std::string program, std::string section, std::string description);
  ~ServiceOptions();
  ServiceOptions(const ServiceOptions&) = delete;
  ServiceOptions& operator=(const ServiceOptions&) = delete;

  // A number in [min, max]. `name` without "--", words joined by dashes. T: int, uint32, int64,
  // uint64, double.
  template <typename T>
  void Add(const std::string& name, T* value, const std::string& help, std::type_identity_t<T> min,
           std::type_identity_t<T> max, const std::string& unit = "") {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    AddNumber(
        name, help, ValueText(*value), RangeText<T>(min, max), unit,
        [value, min, max](const std::string& text) { return ParseValue(text, min, max, *value); });
  }
  // A number in [min, max], or `word`, which makes *value nullopt.
  void AddNumberOr(const std::string& name, const std::string& word, std::optional<int>* value,
                   const std::string& help, int min, int max, const std::string& unit = "");
  // Any text.
  void Add(const std::string& name, std::string* value, const std::string& help);
  // One of `allowed`.
  void Add(const std::string& name, std::string* value, const std::string& help,
           std::vector<std::string> allowed);
  // False unless given; `--name=false` takes back what the config file says.
  void AddFlag(const std::string& name, bool* value, const std::string& help);
  // An argument without a name; declaration order is their order.
  void AddPositional(const std::string& name, std::string* value, const std::string& help,
                     bool required = false);
  // Every RunConfig field as --key-with-dashes. `given` receives, once per key, only what the user
  // gave by flag or in [run], each value already checked on its own. Keys of [run.vtrace] carry the
  // algorithm's name; a flag, and such a key in [run], names the setting of the run's algorithm.
  // `more_help`: key -> what the key's help goes on with; `more_markdown`: sections that follow the
  // tables of RunMarkdown. Programs call AddRunSettings of lib/setup/run_setup.h.
  void AddRun(std::vector<Setting>* given, const std::map<std::string, std::string>& more_help = {},
              const std::string& more_markdown = "");
  // --log-format, --log-level and --log-file.
  void AddLogging(LogConfig* log);

  // Only these options are also read from the environment; without this call all are. For programs
  // that are called by hand: TETRION_SEED or TETRION_MAX_STEPS may be set for a run, and their
  // options of that name mean something else. CHECKs that the names are declared.
  void ReadVariablesOf(const std::vector<std::string>& names);

  // nullopt: go on. 0: --help or --version was answered on stdout. Throws Error(kUsage) naming
  // option, value and allowed range; for unknown names also the nearest known one.
  [[nodiscard]] std::optional<int> Parse(int argc, const char* const* argv);

  // True when the option came from command line, environment or config file. For after Parse.
  bool Given(const std::string& name) const;
  // The environment variables that are options of other programs.
  std::vector<std::string> VariablesOfOthers() const;
  // The --config file, empty without one.
  const std::string& config_file() const;
  // What --help prints.
  std::string Help() const;
  // The program's section of docs/options.md (`--help-markdown` prints it).
  std::string Markdown() const;
  // The run settings among the options as tables for docs/options.md, and what follows them.
  std::string RunMarkdown() const;

 private:
  struct Impl;
  using Setter = std::function<bool(const std::string&)>;  // false: unreadable or out of range

  void AddNumber(const std::string& name, const std::string& help, const std::string& default_text,
                 const std::string& range, const std::string& unit, Setter set);

  std::unique_ptr<Impl> impl_;
};

// A run setting as an option, "--discount=0.99": an algorithm's without its name.
std::string FlagOf(const Setting& setting);

}  // namespace tetrion
