// Linked into every test of the tsan preset. Debian's libzmq is not built with ThreadSanitizer,
// which therefore cannot see how it hands memory between its threads; its calls are left out, and
// those of libsodium, with which it encrypts, and of libpgm, which every context counts.
// Nothing of our own is suppressed.
extern "C" const char* __tsan_default_suppressions() {  // NOLINT: the sanitizer fixes the name
  return "called_from_lib:libzmq.so\ncalled_from_lib:libsodium.so\n"
         "called_from_lib:libpgm-\nrace:libzmq.so\n";
}
