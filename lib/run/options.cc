#include "lib/run/options.h"

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <numeric>
#include <optional>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/core/nowait_writer.h"
#include "lib/run/config_file.h"
#include "lib/run/environment.h"
#include "lib/run/option_list.h"
#include "lib/run/refuse.h"

namespace tetrion {

struct ServiceOptions::Impl {
  OptionList list;
  std::string config_file;
  RunConfig checked;  // run settings are set here to be judged
};

ServiceOptions::ServiceOptions(std::string program, std::string section, std::string description)
    : impl_(std::make_unique<Impl>()) {
  TETRION_CHECK(section.empty() || IsConfigSection(section), "no section of a config file");
  impl_->list.program = std::move(program);
  impl_->list.description = std::move(description);
  impl_->list.section = std::move(section);
}

ServiceOptions::~ServiceOptions() = default;

void ServiceOptions::AddNumber(const std::string& name, const std::string& help,
                               const std::string& default_text, const std::string& range,
                               const std::string& unit, Setter set) {
  OptionSpec spec;
  spec.name = name;
  spec.help = help;
  spec.default_text = default_text;
  spec.range = range;
  spec.unit = unit;
  spec.set = std::move(set);
  impl_->list.Add(std::move(spec));
}

void ServiceOptions::AddNumberOr(const std::string& name, const std::string& word,
                                 std::optional<int>* value, const std::string& help, int min,
                                 int max, const std::string& unit) {
  AddNumber(name, help, *value ? ValueText(**value) : word, word + " or " + RangeText(min, max),
            unit, [value, word, min, max](const std::string& text) {
              int number = 0;
              const bool is_number = ParseValue(text, min, max, number);
              if (!is_number && text != word) return false;
              *value = is_number ? std::optional<int>(number) : std::nullopt;
              return true;
            });
}

void ServiceOptions::Add(const std::string& name, std::string* value, const std::string& help) {
  AddNumber(name, help, *value, "", "", [value](const std::string& text) {
    *value = text;
    return true;
  });
}

void ServiceOptions::Add(const std::string& name, std::string* value, const std::string& help,
                         std::vector<std::string> allowed) {
  TETRION_CHECK(!allowed.empty(), "an option with alternatives needs some");
  const std::string alternatives = std::accumulate(
      allowed.begin() + 1, allowed.end(), allowed.front(),
      [](const std::string& text, const std::string& one) { return text + "|" + one; });
  AddNumber(name, help, *value, alternatives, "", [value, alternatives](const std::string& text) {
    if (!IsOneOf(text, alternatives)) return false;
    *value = text;
    return true;
  });
}

void ServiceOptions::AddFlag(const std::string& name, bool* value, const std::string& help) {
  AddNumber(name, help, *value ? "true" : "false", "", "",
            [value](const std::string& text) { return ParseValue(text, *value); });
  impl_->list.specs.back()->kind = OptionKind::kFlag;
}

void ServiceOptions::AddPositional(const std::string& name, std::string* value,
                                   const std::string& help, bool required) {
  Add(name, value, help);
  OptionSpec& spec = *impl_->list.specs.back();
  spec.kind = OptionKind::kPositional;
  spec.required = required;
}

void ServiceOptions::AddRun(std::vector<Setting>* given,
                            const std::map<std::string, std::string>& more_help,
                            const std::string& more_markdown) {
  impl_->list.given = given;
  impl_->list.more_markdown = more_markdown;
  impl_->list.AddSettings(FieldsOf(impl_->checked), more_help);
}

void ServiceOptions::ReadVariablesOf(const std::vector<std::string>& names) {
  std::size_t found = 0;
  for (const auto& spec : impl_->list.specs) {
    spec->has_variable = std::find(names.begin(), names.end(), spec->name) != names.end();
    found += spec->has_variable ? 1 : 0;
  }
  TETRION_CHECK(found == names.size(), "an option that is not declared");
}

void ServiceOptions::AddLogging(LogConfig* log) {
  AddNumber("log-format", "text lines or one JSON object a line", log->json ? "json" : "text",
            "text|json", "", [log](const std::string& text) {
              log->json = text == "json";
              return IsOneOf(text, "text|json");
            });
  Add("log-level", &log->level, "least severe lines that are written",
      {"trace", "debug", "info", "warn", "error"});
  Add("log-file", &log->file, "also append to this file; its folder is made");
}

namespace {

void ApplyConfigFile(OptionList& list, const std::string& file) {
  for (const auto& [section, settings] : ReadConfigFile(file)) {
    const bool is_run = section == "run";
    if (section == list.section || (is_run && list.given != nullptr)) {
      list.SetSection(file, section, settings);
    } else if (is_run) {
      RunConfig scratch;
      ApplyAll(settings, scratch);
    }
  }
}

bool Has(const OptionList& list, const Variable& variable) {
  return std::any_of(list.specs.begin(), list.specs.end(), [&](const auto& spec) {
    return spec->name == variable.option && HasVariable(*spec);
  });
}

// The program's options among the variables; a variable that is no program's option is said to be
// unknown, before there is a log.
void ApplyVariables(OptionList& list, const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) {
    if (Has(list, variable)) {
      list.Set(variable.option, variable.value, variable.name + "=" + variable.value);
    } else if (!IsOptionOfSomeProgram(variable.option)) {
      const std::string text = list.program + ": warning: " + UnknownVariableText(variable) + "\n";
      (void)NoWaitWriter(STDERR_FILENO).Write(text);
    }
  }
}

// Splits the command line; the values are checked later, after the others'.
struct CommandLine {
  struct Value {
    CLI::Option* option = nullptr;
    std::string text;
  };
  CLI::App app;
  std::map<std::string, Value> values;  // by the option's name
  bool help = false, version = false, markdown = false, run_markdown = false;
  Value config;

  explicit CommandLine(OptionList& list) {
    app.set_help_flag();
    app.allow_extras();
    app.add_flag("--help,-h", help);
    app.add_flag("--version", version);
    app.add_flag("--help-markdown", markdown);
    app.add_flag("--help-markdown-run", run_markdown);
    if (list.TakesConfigFile()) {
      config.option = app.add_option("--config", config.text);
      config.option->take_last();
    }
    for (const auto& spec : list.specs) {
      Value& value = values[spec->name];
      if (value.option != nullptr) continue;  // algorithms share it
      const std::string name =
          spec->kind == OptionKind::kPositional ? spec->name : "--" + spec->name;
      value.option = spec->kind == OptionKind::kFlag ? app.add_flag(name, value.text)
                                                     : app.add_option(name, value.text);
      value.option->take_last();
    }
  }

  // CLI11 would take the word behind `--name=` for the option's value, which is empty.
  std::vector<const char*> WithEmptyValues(const OptionList& list, int argc,
                                           const char* const* argv) {
    std::vector<const char*> words;
    for (int i = 0; i < argc; ++i) {
      const std::string word = argv[i];
      const std::string name = word.substr(0, word.size() - (word.ends_with('=') ? 1 : 0));
      const std::optional<OptionKind> kind = KindOf(list, name);
      if (word == "--") {
        words.insert(words.end(), argv + i, argv + argc);
        break;
      }
      if (kind == OptionKind::kFlag && name != word) {
        Refuse(word + ": expected true or false behind the sign, or " + name);
      }
      const bool takes_value = kind == OptionKind::kValue;
      words.push_back(takes_value ? names_.emplace_back(name).c_str() : argv[i]);
      if (takes_value && name != word) words.push_back("");
      if (takes_value && name == word && i + 1 < argc) words.push_back(argv[++i]);
    }
    return words;
  }

  void Split(OptionList& list, int argc, const char* const* argv) {
    const std::vector<const char*> words = WithEmptyValues(list, argc, argv);
    try {
      app.parse(static_cast<int>(words.size()), words.data());
    } catch (const CLI::ParseError& error) {
      Refuse(std::string(error.what()) + "; " + list.program + " --help lists the options");
    }
    const std::vector<std::string> unknown = app.remaining();
    if (unknown.empty()) return;
    const std::string name = unknown.front().substr(0, unknown.front().find('='));
    if (name.rfind("--", 0) != 0) Refuse("unexpected argument '" + unknown.front() + "'");
    std::vector<std::string> known = {"help", "version"};
    if (list.TakesConfigFile()) known.emplace_back("config");
    for (const auto& spec : list.specs) known.push_back(spec->name);
    Refuse("unknown option " + name + DidYouMean("--", NearestName(name.substr(2), known)) + "; " +
           list.program + " --help lists the options");
  }

 private:
  // Nothing for a word that is no option's name.
  static std::optional<OptionKind> KindOf(const OptionList& list, const std::string& word) {
    if (word == "--config" && list.TakesConfigFile()) return OptionKind::kValue;
    for (const auto& spec : list.specs) {
      if (spec->kind != OptionKind::kPositional && word == "--" + spec->name) return spec->kind;
    }
    return std::nullopt;
  }

  std::deque<std::string> names_;  // of WithEmptyValues' words
};

}  // namespace

std::optional<int> ServiceOptions::Parse(int argc, const char* const* argv) {
  OptionList& list = impl_->list;
  CommandLine command_line(list);
  command_line.Split(list, argc, argv);
  if (command_line.help || command_line.version || command_line.markdown ||
      command_line.run_markdown) {
    const std::string text = command_line.help       ? Help()
                             : command_line.version  ? VersionText(list.program)
                             : command_line.markdown ? Markdown()
                                                     : RunMarkdown();
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    return 0;
  }
  const std::vector<Variable> variables = OptionVariables();
  impl_->config_file = command_line.config.text;
  const bool names_config = list.TakesConfigFile() && command_line.config.option->count() > 0;
  for (const Variable& variable : variables) {
    const bool is_config = variable.option == "config" && list.TakesConfigFile() && !names_config;
    if (is_config) impl_->config_file = variable.value;
  }
  if (!impl_->config_file.empty()) {
    ApplyConfigFile(list, impl_->config_file);
  }
  ApplyVariables(list, variables);
  for (const Variable& variable : variables) {
    if (Has(list, variable) && command_line.values.at(variable.option).option->count() == 0) {
      RememberUse(variable);
    }
  }
  for (const auto& spec : list.specs) {
    const CommandLine::Value& value = command_line.values.at(spec->name);
    const std::string shown =
        spec->kind == OptionKind::kPositional ? spec->name : "--" + spec->name;
    if (value.option->count() > 0) {
      list.Set(spec->name, value.text, shown + (value.text.empty() ? "=" : " " + value.text));
    } else if (spec->required) {
      Refuse("missing argument " + shown + ": " + spec->help);
    }
  }
  return std::nullopt;
}

bool ServiceOptions::Given(const std::string& name) const {
  return impl_->list.Given(name);
}

std::vector<std::string> ServiceOptions::VariablesOfOthers() const {
  std::vector<std::string> names;
  for (const Variable& variable : OptionVariables()) {
    const bool is_others = !Has(impl_->list, variable) && variable.option != "config";
    if (is_others && IsOptionOfSomeProgram(variable.option)) names.push_back(variable.name);
  }
  return names;
}

const std::string& ServiceOptions::config_file() const {
  return impl_->config_file;
}
std::string ServiceOptions::Help() const {
  return HelpText(impl_->list);
}
std::string ServiceOptions::Markdown() const {
  return MarkdownText(impl_->list);
}
std::string ServiceOptions::RunMarkdown() const {
  return RunMarkdownText(impl_->list);
}

std::string FlagOf(const Setting& setting) {
  return "--" + DashesFor(NameOf(setting.key)) + '=' + setting.value;
}

}  // namespace tetrion
