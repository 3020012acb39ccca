#include "tools/up/console.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "lib/run/run_folder.h"

namespace tetrion {
namespace {

constexpr const char* kUpAndClear = "\x1b[%dA\x1b[J";  // cursor up, clear to the end of the screen

__attribute__((format(printf, 1, 2))) std::string Format(const char* format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

std::string Bar(double part) {
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(std::lround(std::clamp(part, 0.0, 1.0) * kWidth));
  return "[" + std::string(static_cast<std::size_t>(filled), '#') +
         std::string(static_cast<std::size_t>(kWidth - filled), '.') + "]";
}

// Share of `part` in `whole`, in percent.
double Percent(double part, double whole) {
  return whole > 0 ? 100.0 * part / whole : 0.0;
}

// Lines of an episode, and how fast they come.
std::string Lines(const RunStatus& s) {
  if (s.lines_mean <= 0) return HumanNumber(s.lines_mean);
  return HumanNumber(s.lines_mean) + Format(" (%.0f per 1000 steps)", s.LinesPer1000Steps());
}

// "13.5/s" between the two; nothing before the learner knows its rate: it tells 0 then.
std::string UpdateRate(const RunStatus& s, const char* before, const char* after) {
  const double rate = s.Learner("updates_per_s");
  return rate > 0 ? before + HumanNumber(rate) + "/s" + after : "";
}

// Nothing, or how many updates were not taken.
std::string Skipped(const RunStatus& s) {
  const double skipped = s.Learner("skipped_updates");
  return skipped > 0 ? "  skipped " + HumanNumber(skipped) : "";
}

// At most `columns` bytes of each line; 0: all.
std::string CutLines(const std::string& text, std::size_t columns) {
  if (columns == 0) return text;
  std::string cut;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    cut += text.substr(begin, std::min(end - begin, columns)) + "\n";
  }
  return cut;
}

}  // namespace

std::string HumanNumber(double value) {
  const double size = std::abs(value);
  if (size >= 1e9) return Format("%.2f G", value / 1e9);
  if (size >= 1e6) return Format("%.2f M", value / 1e6);
  if (size >= 1e4) return Format("%.1f k", value / 1e3);
  if (size >= 100 || value == std::floor(value)) return Format("%.0f", value);
  return Format("%.2f", value);
}

std::string HumanSeconds(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(seconds, 0.0));
  const auto hours = static_cast<int>(whole / 3600), minutes = static_cast<int>(whole / 60 % 60);
  const auto rest = static_cast<int>(whole % 60);
  if (hours > 0) return Format("%dh%02dm", hours, minutes);
  if (minutes > 0) return Format("%dm%02ds", minutes, rest);
  return Format("%ds", rest);
}

std::string StatusTable(const RunStatus& s, int actors_up) {
  std::string text = Format("run %s  env %s  %s  %s\n", s.run.c_str(), s.env.c_str(),
                            s.phase.c_str(), HumanSeconds(s.elapsed_s).c_str());
  text +=
      Format("  env steps   %12s   %10s/s   actors %d of %d\n", HumanNumber(s.env_steps).c_str(),
             HumanNumber(s.env_steps_per_s).c_str(), s.actors, actors_up);
  text += Format("  episodes    %12s   %10s/s   length %s\n", HumanNumber(s.episodes).c_str(),
                 HumanNumber(s.episodes_per_s).c_str(), HumanNumber(s.length_mean).c_str());
  text += Format("  return      %12s   best %s   lines %s\n", HumanNumber(s.return_mean).c_str(),
                 HumanNumber(s.return_best).c_str(), Lines(s).c_str());
  text += Format("  updates     %12s   %12s   loss %.3f   entropy %.3f%s\n",
                 HumanNumber(s.Learner("updates")).c_str(), UpdateRate(s, "", "").c_str(),
                 s.Trainer("loss"), s.Trainer("entropy"), Skipped(s).c_str());
  text += Format("  replay      %11.0f%%   policy lag p50 %.0f p99 %.0f\n",
                 Percent(s.Learner("replay_rows"), s.Learner("replay_capacity_rows")),
                 s.Trainer("lag_p50"), s.Trainer("lag_p99"));
  text += Format("  actors wait  token %s s   ring %s s   weights %s s   answer %s s\n",
                 HumanNumber(s.Actor("wait_token_s")).c_str(),
                 HumanNumber(s.Actor("wait_ring_s")).c_str(),
                 HumanNumber(s.Actor("wait_weights_s")).c_str(),
                 HumanNumber(s.Actor("wait_answer_s")).c_str());
  if (s.stop_progress) {
    text += Format("  %s %.0f%% of --stop-after\n", Bar(*s.stop_progress).c_str(),
                   100.0 * *s.stop_progress);
  } else {
    text += "  runs until Ctrl-C\n";
  }
  return text;
}

std::string StatusLine(const RunStatus& s) {
  std::string text = Format(
      "%s %s  steps %s (%s/s)  episodes %s  return %.2f best %.2f  lines %s  updates %s%s%s  "
      "actors %d",
      HumanSeconds(s.elapsed_s).c_str(), s.phase.c_str(), HumanNumber(s.env_steps).c_str(),
      HumanNumber(s.env_steps_per_s).c_str(), HumanNumber(s.episodes).c_str(), s.return_mean,
      s.return_best, Lines(s).c_str(), HumanNumber(s.Learner("updates")).c_str(),
      UpdateRate(s, " (", ")").c_str(), Skipped(s).c_str(), s.actors);
  if (s.stop_progress) text += Format("  %.0f%%", 100.0 * *s.stop_progress);
  return text + "\n";
}

std::string SummaryText(const SummaryInput& input) {
  const RunStatus& s = input.status;
  std::string text = "\n";
  if (!input.failed.empty()) {
    text += Format("run %s FAILED after %s (exit status %d): %s ended; see %s\n", input.run.c_str(),
                   HumanSeconds(input.wall_s).c_str(), input.exit_code, input.failed.c_str(),
                   input.log.c_str());
    const bool nothing_known = s.env_steps <= 0;  // a checkpoint is an earlier start's then
    if (nothing_known || (input.checkpoint.empty() && s.Learner("updates") <= 0)) return text;
  }
  text += Format("run %s: %s env steps, %s episodes, %s updates in %s\n", input.run.c_str(),
                 HumanNumber(s.env_steps).c_str(), HumanNumber(s.episodes).c_str(),
                 HumanNumber(s.Learner("updates")).c_str(), HumanSeconds(input.wall_s).c_str());
  text += Format("  return mean %.2f (last 100 episodes), best %.2f, lines %s\n", s.return_mean,
                 s.return_best, Lines(s).c_str());
  text += "  checkpoint  " + (input.checkpoint.empty() ? "none" : input.checkpoint) + "\n";
  const std::string run = RunArguments(input.runs_dir, input.run);
  text += "  go on       ./tetrion up --resume " + run + "\n";
  if (input.checkpoint.empty()) return text;
  text += "  evaluate    ./tetrion eval " + run + "\n";
  text += "  watch       ./tetrion play " + run + "\n";
  return text;
}

std::string Console::Show(const RunStatus& status, int actors_up, const Screen& screen) {
  const std::int64_t now_ns = clock_.NowNs();
  if (now_ns < next_ns_) return "";
  if (!terminal_) {
    if (next_ns_ == 0 && status.Learner("updates") <= 0) return "";
    next_ns_ = now_ns + kLinePeriodNs;
    return StatusLine(status);
  }
  next_ns_ = now_ns + kTablePeriodNs;
  const std::string table = CutLines(StatusTable(status, actors_up), screen.columns);
  if (std::exchange(lines_between_, screen.lines_between) != screen.lines_between) lines_shown_ = 0;
  const std::string back = lines_shown_ > 0 ? Format(kUpAndClear, lines_shown_) : "";
  lines_shown_ = static_cast<int>(std::count(table.begin(), table.end(), '\n'));
  return back + table;
}

}  // namespace tetrion
