#pragma once

// Runs code one machine instruction at a time, so that a test decides what happens between any two
// of them: the interleavings that a stress test meets by luck are met one by one.
//
// Thread role: one call at a time in the process, on the calling thread. The hook runs in a signal
// handler between two instructions of `body`: neither allocates nor locks.

#include <signal.h>
#include <ucontext.h>

#include <cstdint>
#include <functional>

#include "lib/core/check.h"

namespace tetrion::testing {

// Not under ThreadSanitizer, which holds signals back and multiplies the instructions.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
inline constexpr bool kCanSingleStep = true;
#else
inline constexpr bool kCanSingleStep = false;
#endif

// Called before each instruction; `pc` points at its bytes. False: no further calls.
using StepHook = std::function<bool(const unsigned char* pc)>;

namespace internal {

struct Stepping {
  const StepHook* hook = nullptr;
  volatile bool in_body = false;
  volatile bool wanted = false;
};
inline Stepping stepping;

#if defined(__x86_64__)
inline void OnTrap(int, siginfo_t*, void* context) {
  constexpr greg_t kTrapFlag = 0x100;
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (stepping.in_body && stepping.wanted) {
    stepping.wanted = (*stepping.hook)(reinterpret_cast<unsigned char*>(registers[REG_RIP]));
  }
  if (stepping.wanted) {
    registers[REG_EFL] |= kTrapFlag;
  } else {
    registers[REG_EFL] &= ~kTrapFlag;
  }
}
#endif

}  // namespace internal

// Runs `body`; calls `hook` before each of its instructions.
inline void SingleStep(const std::function<void()>& body, const StepHook& hook) {
#if defined(__x86_64__)
  struct sigaction trap = {}, before = {};
  trap.sa_sigaction = internal::OnTrap;
  trap.sa_flags = SA_SIGINFO;
  TETRION_CHECK(sigaction(SIGTRAP, &trap, &before) == 0, "no handler for traps");
  internal::stepping.hook = &hook;
  internal::stepping.wanted = true;
  raise(SIGTRAP);  // the handler sets the trap flag of the code that it returns to
  internal::stepping.in_body = true;
  body();
  internal::stepping.in_body = false;
  internal::stepping.wanted = false;
  // The trap after the store above cleared the flag.
  TETRION_CHECK(sigaction(SIGTRAP, &before, nullptr) == 0, "the old handler of traps");
#else
  static_cast<void>(hook);
  body();
#endif
}

// Runs `body` with `action` before its instruction number `at`, from 0; false when it has fewer, so
// that a loop over `at` tries `action` everywhere.
inline bool RunWithActionAt(int at, const std::function<void()>& body,
                            const std::function<void()>& action) {
  int next = 0;
  bool acted = false;
  SingleStep(body, [&](const unsigned char*) {
    if (next++ < at) return true;
    action();
    acted = true;
    return false;
  });
  return acted;
}

// Whether the instruction keeps stores before it from being overtaken by loads after it: it has a
// lock prefix, exchanges with memory, or is mfence.
inline bool IsFullBarrier(const unsigned char* pc) {
  for (int prefixes = 0; prefixes < 4; ++prefixes, ++pc) {
    if (*pc == 0xF0) return true;
    if (*pc != 0x66 && *pc != 0x67 && *pc != 0xF2 && *pc != 0xF3 && *pc != 0x64) break;
  }
  if (*pc >= 0x40 && *pc <= 0x4F) ++pc;
  const bool exchange = (*pc == 0x86 || *pc == 0x87) && (pc[1] >> 6) != 3;
  return exchange || (pc[0] == 0x0F && pc[1] == 0xAE && pc[2] == 0xF0);
}

// Full barriers that `body` executes.
inline int FullBarriers(const std::function<void()>& body) {
  int barriers = 0;
  SingleStep(body, [&](const unsigned char* pc) {
    barriers += IsFullBarrier(pc) ? 1 : 0;
    return true;
  });
  return barriers;
}

}  // namespace tetrion::testing
