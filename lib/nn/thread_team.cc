#include "lib/nn/thread_team.h"

#include <pthread.h>

#include <atomic>

#include "lib/core/clock.h"

namespace tetrion {
namespace {

// How long a member sleeps before it looks again without having been woken.
constexpr std::int64_t kRecheckNs = 100 * kNanosPerMilli;

}  // namespace

// A call of Share.
struct ThreadTeam::Loop {
  const std::function<void(int, int)>& work;
  const int items;
  std::atomic<int> next = 0;

  // Takes items until there are none.
  void Work(int member) {
    for (int item = next.fetch_add(1); item < items; item = next.fetch_add(1)) work(member, item);
  }
};

ThreadTeam::ThreadTeam(int size, const std::string& name) {
  try {
    for (int member = 1; member < size; ++member) {
      helpers_.emplace_back([this, member] { Help(member); });
      const std::string comm = (name + '-' + std::to_string(member)).substr(0, 15);
      pthread_setname_np(helpers_.back().native_handle(), comm.c_str());
    }
  } catch (...) {
    Stop();
    throw;
  }
}

ThreadTeam::~ThreadTeam() {
  Stop();
}

void ThreadTeam::Stop() {
  {
    MutexLock lock(mu_);
    stop_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadTeam::Share(int items, const std::function<void(int, int)>& work) {
  Loop loop = {work, items};
  if (helpers_.empty() || items < 2) {
    loop.Work(0);
    return;
  }
  {
    MutexLock lock(mu_);
    loop_ = &loop;
    ++round_;
  }
  changed_.NotifyAll();
  loop.Work(0);
  MutexLock lock(mu_);
  loop_ = nullptr;
  while (busy_ > 0) changed_.WaitFor(mu_, kRecheckNs);
}

void ThreadTeam::Help(int member) {
  std::uint64_t seen = 0;
  while (true) {
    Loop* loop = nullptr;
    {
      MutexLock lock(mu_);
      while (!stop_ && (round_ == seen || loop_ == nullptr)) changed_.WaitFor(mu_, kRecheckNs);
      if (stop_) return;
      seen = round_;
      loop = loop_;
      ++busy_;
    }
    loop->Work(member);
    MutexLock lock(mu_);
    if (--busy_ == 0) changed_.NotifyAll();
  }
}

}  // namespace tetrion
