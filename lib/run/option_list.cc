#include "lib/run/option_list.h"

#include <algorithm>

#include "lib/core/check.h"
#include "lib/run/options.h"
#include "lib/run/program.h"

namespace tetrion {
namespace {

constexpr std::size_t kHelpColumn = 30;

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

}  // namespace

std::string OptionSpec::Expected() const {
  if (kind == OptionKind::kFlag) return "true or false";
  if (range.empty()) return "1 to 64 letters, digits, '.', '_' or '-'";
  const bool numeric = range.find(" to ") != std::string::npos;
  return (numeric ? "" : "one of ") + range + (unit.empty() ? "" : " " + unit);
}

void OptionList::Add(OptionSpec spec) {
  TETRION_CHECK(Find(spec.name) == nullptr, "an option is declared twice");
  specs.push_back(std::make_unique<OptionSpec>(std::move(spec)));
}

OptionSpec* OptionList::Find(const std::string& name) const {
  const auto at = std::find_if(specs.begin(), specs.end(),
                               [&](const auto& spec) { return spec->name == name; });
  return at == specs.end() ? nullptr : at->get();
}

std::string KeyFor(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
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
  std::string arguments, options, run;
  for (const auto& spec : list.specs) {
    const std::string line = HelpLine(Shown(*spec), spec->help, Facts(*spec));
    if (spec->kind == OptionKind::kPositional) {
      usage += spec->required ? " " + spec->name : " [" + spec->name + "]";
      arguments += line;
    } else {
      (spec->is_run_setting ? run : options) += line;
    }
  }
  options += HelpLine("--config FILE", "TOML settings; the command line beats them", "");
  options += HelpLine("--help", "this text", "");
  options += HelpLine("--version", "version, revision and preset", "");
  std::string text = list.program + ": " + list.description + "\n\n" + usage + "\n";
  if (!arguments.empty()) text += "\nArguments\n" + arguments;
  text += "\nOptions\n" + options;
  if (!run.empty()) {
    text +=
        "\nRun settings (the same for every process of a run; the coordinator owns them;\n"
        "those of learning may be given anew with --resume, docs/options.md has the list)\n" +
        run;
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
  return text + (has_run ? "\nTakes the run settings too.\n" : "");
}

std::string RunMarkdownText(const OptionList& list) {
  std::string text =
      "## Run settings\n\nThe same for every process of a run: section `[run]`, or an option of "
      "any "
      "program that says so. Environments have presets of their own, which the user's settings "
      "beat. Those of the first table stay for the run's life; the others may be given anew with "
      "`--resume`.\n";
  for (const bool may_change : {false, true}) {
    text += std::string("\n") + kMarkdownHead;
    for (const auto& spec : list.specs) {
      if (spec->is_run_setting && spec->may_change == may_change) text += MarkdownRow(*spec);
    }
  }
  return text;
}

}  // namespace tetrion
