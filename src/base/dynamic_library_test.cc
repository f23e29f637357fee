#include "base/dynamic_library.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace transept {
namespace {

// glibc's mathematics: on every machine.
constexpr const char* kMath = "libm.so.6";

struct Functions {
  double (*fmax)(double, double) = nullptr;
};

Status load(Functions& functions) {
  ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::open(kMath));
  TRANSEPT_FIND_FUNCTION(fmax)
  return ok_status();
}

Status load_none(Functions& /*functions*/) { return DynamicLibrary::open("libtransept-none.so.7").status(); }

TEST(DynamicLibrary, FindsFunctions) {
  const LoadedOnce<Functions> loaded(load);
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  EXPECT_EQ(loaded.functions.fmax(2, 3), 3);
}

TEST(DynamicLibrary, NamesWhatIsMissing) {
  const LoadedOnce<Functions> loaded(load_none);
  EXPECT_EQ(loaded.status, absl::NotFoundError("libtransept-none.so.7 cannot be loaded"));
  EXPECT_EQ(loaded.functions.fmax, nullptr);

  const auto library = DynamicLibrary::open(kMath);
  ASSERT_TRUE(library.ok()) << library.status();
  void (*function)() = &std::abort;
  EXPECT_EQ(library->find("transept_none", function), absl::NotFoundError("libm.so.6 has no transept_none"));
  EXPECT_EQ(function, nullptr);
}

}  // namespace
}  // namespace transept
