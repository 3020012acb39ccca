#include "services/coordinator/process_table.h"

#include <algorithm>
#include <limits>

namespace tetrion::coordinator {

void ProcessTable::Restore(const Process& process, bool gone) {
  Entry& entry = entries_[process.number];
  entry.process = process;
  if (gone) Leave(process.number);
}

bool ProcessTable::MayOpen(std::uint64_t number) const {
  const auto found = entries_.find(number);
  if (found == entries_.end()) return true;
  const Entry& entry = found->second;
  return entry.sessions < kMaxSessions ||
         clock_.NowNs() - entry.window_start_ns > kSessionsWindowNs;
}

void ProcessTable::Open(std::uint64_t number, bool returns) {
  const auto [found, is_new] = entries_.try_emplace(number);
  Entry& entry = found->second;
  const std::int64_t now_ns = clock_.NowNs();
  if (is_new) {
    entry.process.number = number;
    entry.process.base_known = !returns;
  }
  if (entry.sessions == 0 || now_ns - entry.window_start_ns > kSessionsWindowNs) {
    entry.window_start_ns = now_ns;
    entry.sessions = 0;
  }
  ++entry.sessions;
  Return(entry);
  Touch(entry);
}

void ProcessTable::Return(Entry& entry) {
  if (!entry.gone) return;
  gone_.erase(entry.gone_at);
  entry.gone = false;
}

void ProcessTable::Leave(std::uint64_t number) {
  const auto found = entries_.find(number);
  if (found == entries_.end() || found->second.gone) return;
  found->second.gone = true;
  found->second.gone_at = gone_.insert(gone_.end(), number);
  if (gone_.size() > kMaxGone) Forget(gone_.front());
}

void ProcessTable::Forget(std::uint64_t number) {
  const auto found = entries_.find(number);
  if (found == entries_.end()) return;
  const Process& process = found->second.process;
  steps_forgotten_ += process.env_steps - process.steps_base;
  Return(found->second);
  entries_.erase(found);
  forgotten_.push_back(number);
}

void ProcessTable::Ban(std::uint64_t number, const std::string& why) {
  const auto found = entries_.find(number);
  if (found != entries_.end()) found->second.ban = why;
}

std::string ProcessTable::BanOf(std::uint64_t number) const {
  const auto found = entries_.find(number);
  return found == entries_.end() ? "" : found->second.ban;
}

std::uint64_t ProcessTable::Tell(std::uint64_t number, std::uint64_t env_steps) {
  const auto found = entries_.find(number);
  if (found == entries_.end()) return 0;
  Entry& entry = found->second;
  Process& process = entry.process;
  if (!process.base_known) {
    process.base_known = true;
    process.env_steps = process.steps_base = env_steps;
    Touch(entry);
    return 0;
  }
  if (env_steps <= process.env_steps) return 0;
  const std::uint64_t fresh = env_steps - process.env_steps;
  process.env_steps = env_steps;
  Touch(entry);
  return fresh;
}

void ProcessTable::AddGranted(std::uint64_t number, std::uint64_t tokens) {
  const auto found = entries_.find(number);
  if (found == entries_.end() || tokens == 0) return;
  found->second.process.tokens_granted += tokens;
  Touch(found->second);
}

const Process* ProcessTable::Find(std::uint64_t number) const {
  const auto found = entries_.find(number);
  return found == entries_.end() ? nullptr : &found->second.process;
}

void ProcessTable::Touch(Entry& entry) {
  if (entry.dirty) return;
  entry.dirty = true;
  dirty_.push_back(entry.process.number);
}

std::vector<Process> ProcessTable::TakeDirty() {
  std::vector<Process> changed;
  changed.reserve(dirty_.size());
  for (const std::uint64_t number : dirty_) {
    const auto found = entries_.find(number);
    if (found == entries_.end() || !found->second.dirty) continue;  // forgotten, or listed twice
    found->second.dirty = false;
    changed.push_back(found->second.process);
  }
  dirty_.clear();
  return changed;
}

std::vector<std::uint64_t> ProcessTable::TakeForgotten() {
  std::vector<std::uint64_t> forgotten;
  forgotten.swap(forgotten_);
  return forgotten;
}

std::string ImpossibleSteps(std::uint64_t env_steps, const Process& process,
                            std::uint32_t max_steps) {
  if (!process.base_known) return "";
  const std::uint64_t own = env_steps - std::min(env_steps, process.steps_base);
  const std::uint64_t most =
      process.tokens_granted > std::numeric_limits<std::uint64_t>::max() >> 32
          ? std::numeric_limits<std::uint64_t>::max()
          : process.tokens_granted * max_steps;
  if (own <= most) return "";
  return "told " + std::to_string(own) + " steps, " + std::to_string(process.tokens_granted) +
         " tokens of at most " + std::to_string(max_steps) + " steps were granted";
}

}  // namespace tetrion::coordinator
