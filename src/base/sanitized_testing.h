// Whether a test runs under a sanitizer.
#pragma once

namespace transept {

// The build has TRANSEPT_SANITIZE. Sanitizers look for bad accesses, races and undefined arithmetic, and make code five
// to twenty times slower: cases that go over a product of sizes take every kind of size there, and the release build
// all of them.
#if defined(TRANSEPT_SANITIZED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace transept
