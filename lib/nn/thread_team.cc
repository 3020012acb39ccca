#include "lib/nn/thread_team.h"

#include <pthread.h>

#include "lib/core/clock.h"

namespace tetrion {
namespace {

// How long a member sleeps before it looks again without having been woken.
constexpr std::int64_t kRecheckNs = 100 * kNanosPerMilli;

}  // namespace

ThreadTeam::ThreadTeam(int size, const std::string& name) {
  for (int member = 1; member < size; ++member) {
    helpers_.emplace_back([this, member] { Help(member); });
    const std::string comm = (name + '-' + std::to_string(member)).substr(0, 15);
    pthread_setname_np(helpers_.back().native_handle(), comm.c_str());
  }
}

ThreadTeam::~ThreadTeam() {
  {
    MutexLock lock(mu_);
    stop_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadTeam::Run(const std::function<void(int)>& work) {
  if (helpers_.empty()) {
    work(0);
    return;
  }
  {
    MutexLock lock(mu_);
    work_ = &work;
    busy_ = static_cast<int>(helpers_.size());
    ++round_;
  }
  changed_.NotifyAll();
  work(0);
  MutexLock lock(mu_);
  while (busy_ > 0) changed_.WaitFor(mu_, kRecheckNs);
}

void ThreadTeam::Help(int member) {
  std::uint64_t seen = 0;
  while (true) {
    const std::function<void(int)>* work = nullptr;
    {
      MutexLock lock(mu_);
      while (!stop_ && round_ == seen) changed_.WaitFor(mu_, kRecheckNs);
      if (stop_) return;
      seen = round_;
      work = work_;
    }
    (*work)(member);
    MutexLock lock(mu_);
    if (--busy_ == 0) changed_.NotifyAll();
  }
}

}  // namespace tetrion
