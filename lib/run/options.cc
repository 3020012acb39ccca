#include "lib/run/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/run/config_file.h"
#include "lib/run/option_list.h"
#include "lib/run/program.h"
#include "lib/run/run_config_fields.h"

namespace tetrion {
namespace {

[[noreturn]] void Refuse(const std::string& message) {
  throw Error(ExitCode::kUsage, message);
}

std::string DashesFor(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

// Checks one run setting on its own and keeps it, replacing an earlier value of the same key.
bool CollectSetting(const std::string& key, const std::string& text, std::vector<Setting>& given) {
  RunConfig scratch;
  try {
    Apply({key, text}, scratch);
  } catch (const Error&) {
    return false;
  }
  const Setting setting{key, ValueOf(key, scratch)};
  const auto same = std::find_if(given.begin(), given.end(),
                                 [&](const Setting& other) { return other.key == key; });
  if (same == given.end()) {
    given.push_back(setting);
  } else {
    *same = setting;
  }
  return true;
}

// Declares one option per RunConfig field.
struct RunDeclarer {
  OptionList& list;
  std::vector<Setting>* given;
  const std::map<std::string, std::string>& more_help;

  template <typename T>
  void Number(const char* key, const T& value, T min, T max, const char* unit, FieldHelp help) {
    Declare(key, help, ValueText(value), RangeText(min, max), unit, false);
  }
  void Flag(const char* key, bool, FieldHelp help) { Declare(key, help, "false", "", "", true); }
  void Choice(const char* key, const std::string& value, const char* allowed, FieldHelp help) {
    Declare(key, help, value, allowed, "", false);
  }
  void Text(const char* key, const std::string& value, FieldHelp help) {
    Declare(key, help, value, "", "", false);
  }

 private:
  void Declare(const char* key, FieldHelp help, const std::string& default_text,
               const std::string& range, const char* unit, bool is_flag) {
    OptionSpec spec;
    spec.name = DashesFor(key);
    spec.help = help.text;
    if (const auto more = more_help.find(key); more != more_help.end()) spec.help += more->second;
    spec.may_change = help.may_change;
    spec.default_text = default_text;
    spec.range = range;
    spec.unit = unit;
    spec.kind = is_flag ? OptionKind::kFlag : OptionKind::kValue;
    spec.is_run_setting = true;
    spec.set = [name = std::string(key), out = given](const std::string& text) {
      return CollectSetting(name, text, *out);
    };
    list.Add(std::move(spec));
  }
};

}  // namespace

struct ServiceOptions::Impl {
  OptionList list;
  std::string section;
  std::string config_file;
  bool has_run = false;
};

ServiceOptions::ServiceOptions(std::string program, std::string section, std::string description)
    : impl_(std::make_unique<Impl>()) {
  impl_->list.program = std::move(program);
  impl_->list.description = std::move(description);
  impl_->section = std::move(section);
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
                            const std::map<std::string, std::string>& more_help) {
  impl_->has_run = true;
  const RunConfig defaults;
  VisitRunConfig(defaults, RunDeclarer{impl_->list, given, more_help});
}

void ServiceOptions::AddLogging(LogConfig* log) {
  AddNumber("log-format", "text lines or one JSON object a line", log->json ? "json" : "text",
            "text|json", "", [log](const std::string& text) {
              log->json = text == "json";
              return IsOneOf(text, "text|json");
            });
  Add("log-level", &log->level, "least severe lines that are written",
      {"trace", "debug", "info", "warn", "error"});
  Add("log-file", &log->file, "also append to this file");
}

namespace {

// Gives the option its value and remembers that the user did; `where` introduces the complaint.
void SetOption(OptionSpec& spec, const std::string& text, const std::string& where) {
  if (!spec.set(text)) Refuse(where + ": expected " + spec.Expected());
  spec.given = true;
  spec.current = text;
}

// Known keys of a section, for the hint at a misspelt one.
void ApplySection(OptionList& list, const std::string& file, const std::string& section,
                  const std::vector<Setting>& settings, bool run_settings) {
  std::vector<std::string> known;
  for (const auto& spec : list.specs) {
    if (spec->is_run_setting == run_settings && spec->kind != OptionKind::kPositional) {
      known.push_back(KeyFor(spec->name));
    }
  }
  for (const Setting& setting : settings) {
    OptionSpec* spec = list.Find(DashesFor(setting.key));
    const std::string where = file + ": [" + section + "] " + setting.key;
    if (spec == nullptr || spec->is_run_setting != run_settings ||
        spec->kind == OptionKind::kPositional) {
      Refuse(where + ": unknown key" + DidYouMean("", NearestName(setting.key, known)));
    }
    SetOption(*spec, setting.value, where + " = '" + setting.value + "'");
  }
}

void ApplyConfigFile(OptionList& list, const std::string& file, const std::string& own_section,
                     bool has_run) {
  for (const auto& [section, settings] : ReadConfigFile(file)) {
    if (section == own_section) {
      ApplySection(list, file, section, settings, false);
    } else if (section == "run" && has_run) {
      ApplySection(list, file, section, settings, true);
    } else if (section == "run") {
      RunConfig scratch;
      for (const Setting& setting : settings) Apply(setting, scratch);
    }
  }
}

// Splits the command line; the values are checked later, after the config file's.
struct CommandLine {
  CLI::App app;
  bool help = false, version = false, markdown = false, run_markdown = false;
  std::string config_file;

  explicit CommandLine(OptionList& list) {
    app.set_help_flag();
    app.allow_extras();
    app.add_flag("--help,-h", help);
    app.add_flag("--version", version);
    app.add_flag("--help-markdown", markdown);
    app.add_flag("--help-markdown-run", run_markdown);
    app.add_option("--config", config_file)->take_last();
    for (const auto& spec : list.specs) {
      const bool positional = spec->kind == OptionKind::kPositional;
      const std::string name = positional ? spec->name : "--" + spec->name;
      spec->option = spec->kind == OptionKind::kFlag
                         ? app.add_flag(name, spec->from_command_line)
                         : app.add_option(name, spec->from_command_line);
      spec->option->take_last();
    }
  }

  void Split(OptionList& list, int argc, const char* const* argv) {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      Refuse(std::string(error.what()) + "; " + list.program + " --help lists the options");
    }
    const std::vector<std::string> unknown = app.remaining();
    if (unknown.empty()) return;
    const std::string name = unknown.front().substr(0, unknown.front().find('='));
    if (name.rfind("--", 0) != 0) Refuse("unexpected argument '" + unknown.front() + "'");
    std::vector<std::string> known = {"help", "version", "config"};
    for (const auto& spec : list.specs) known.push_back(spec->name);
    Refuse("unknown option " + name + DidYouMean("--", NearestName(name.substr(2), known)) + "; " +
           list.program + " --help lists the options");
  }
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
  impl_->config_file = command_line.config_file;
  if (!impl_->config_file.empty()) {
    ApplyConfigFile(list, impl_->config_file, impl_->section, impl_->has_run);
  }
  for (const auto& spec : list.specs) {
    const std::string shown =
        spec->kind == OptionKind::kPositional ? spec->name : "--" + spec->name;
    if (spec->option->count() > 0) {
      SetOption(*spec, spec->from_command_line, shown + " " + spec->from_command_line);
    } else if (spec->required) {
      Refuse("missing argument " + shown + ": " + spec->help);
    }
    spec->option = nullptr;
  }
  return std::nullopt;
}

bool ServiceOptions::Given(const std::string& name) const {
  const OptionSpec* spec = impl_->list.Find(name);
  TETRION_CHECK(spec != nullptr, "no such option");
  return spec->given;
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
}  // namespace tetrion
