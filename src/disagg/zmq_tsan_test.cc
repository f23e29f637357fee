// For tests under ThreadSanitizer, which does not see how libzmq, not built with it, hands memory from thread to
// thread: what the library itself reads, writes and frees is not looked at, nor the handle of bytes that it gives back.
#ifdef __SANITIZE_THREAD__
extern "C" const char* __tsan_default_suppressions();   // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "called_from_lib:libzmq.so.5\nrace:let_go\n";
}
#endif
