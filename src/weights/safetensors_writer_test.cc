// Proves that written files read back tensor for tensor, that what is made of whole cache lines lies on them, and that
// a file which cannot be written whole is an error that says why.
#include "weights/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "base/folder_testing.h"
#include "base/mmap_file.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using testing::TestFolder;

constexpr auto kGoOn = [] { return true; };

SafetensorsTensor bytes_tensor(std::string name, const std::string& content) {
  return {std::move(name), "U8", {static_cast<int64_t>(content.size())}, std::as_bytes(std::span(content))};
}

TEST(SafetensorsWriter, FilesReadBackAndLinesLieOnLines) {
  const TestFolder dir;
  const std::string path = dir.path() + "/m.safetensors";
  const std::string odd = "odd", lines(128, 'l'), nothing, more(64, 'm');
  const SafetensorsMetadata metadata{{"transept.a", "1"}, {"transept.\"b\"", "\xC3\xA9\n"}};
  const std::vector<SafetensorsTensor> tensors = {bytes_tensor("odd \"name\"", odd), bytes_tensor("lines", lines),
                                                  bytes_tensor("nothing", nothing), bytes_tensor("more", more)};
  ASSERT_TRUE(write_safetensors(path, tensors, metadata, kGoOn).ok());
  const auto file = MmapFile::open(path);
  ASSERT_TRUE(file.ok());
  SafetensorsMetadata read;
  const auto back = parse_safetensors((*file)->bytes(), "m", &read);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(read, metadata);
  ASSERT_EQ(back->size(), tensors.size());
  EXPECT_EQ(back->front().data.data() - (*file)->bytes().data(), 4096) << "data begins on a page";
  EXPECT_EQ(back->back().name, "odd \"name\"") << "what is not whole lines comes last";
  for (const SafetensorsTensor& tensor : tensors) {
    const auto same = std::find_if(back->begin(), back->end(), [&](const auto& t) { return t.name == tensor.name; });
    ASSERT_NE(same, back->end());
    EXPECT_EQ(same->shape, tensor.shape);
    EXPECT_TRUE(std::ranges::equal(same->data, tensor.data));
    if (tensor.data.size() % 64 == 0) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(same->data.data()) % 64, 0u) << tensor.name;
    }
  }
}

TEST(SafetensorsWriter, AFileThatIsThereStaysAsItIs) {
  const TestFolder dir;
  dir.write("m.safetensors", "precious");
  const std::string path = dir.path() + "/m.safetensors";
  EXPECT_THAT(error_message(write_safetensors(path, {}, {}, kGoOn)), HasSubstr("File exists"));
  EXPECT_EQ(*read_file(path), "precious");
  EXPECT_THAT(error_message(write_safetensors(dir.path() + "/no/m", {}, {}, kGoOn)), HasSubstr("No such file"));
}

TEST(SafetensorsWriter, AFullDiskIsAnError) {
  const TestFolder dir;
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 1 << 20, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string large(3 << 20, 'x');
  const Status status = write_safetensors(dir.path() + "/m", {bytes_tensor("large", large)}, {}, kGoOn);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(error_message(status), HasSubstr("/m: cannot be written: File too large"));
}

TEST(SafetensorsWriter, EndsWhenAskedTo) {
  const TestFolder dir;
  const std::string large(40 << 20, 'x');
  int pieces = 0;
  const auto one = [&] { return ++pieces <= 1; };
  const Status status = write_safetensors(dir.path() + "/m", {bytes_tensor("large", large)}, {}, one);
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

}  // namespace
}  // namespace transept
