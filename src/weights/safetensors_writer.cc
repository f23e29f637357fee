#include "weights/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/checked_math.h"
#include "base/json.h"

namespace transept {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kLineBytes = 64;
constexpr size_t kLengthBytes = 8;
constexpr size_t kPieceBytes = size_t{16} << 20;

class FileWriter final {
 public:
  explicit FileWriter(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)), why_not_open_(errno) {
    piece_.reserve(kPieceBytes);
  }
  ~FileWriter() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Collects what comes in pieces that begin at multiples of their size: the system keeps what was written so in large
  // pages, and maps these.
  Status write(std::span<const std::byte> bytes, FunctionRef<bool()> goes_on) {
    if (fd_ < 0) return error(why_not_open_);
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), kPieceBytes - piece_.size());
      piece_.insert(piece_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
      bytes = bytes.subspan(count);
      if (piece_.size() < kPieceBytes) continue;
      if (!goes_on()) return absl::CancelledError(str_cat(path_, ": interrupted"));
      RETURN_IF_ERROR(flush());
    }
    return ok_status();
  }

  // Until here a full disk may not have shown.
  Status close() {
    RETURN_IF_ERROR(flush());
    if (::fsync(fd_) != 0) return error(errno);
    const int closed = ::close(fd_);
    fd_ = -1;
    return closed == 0 ? ok_status() : error(errno);
  }

 private:
  Status flush() {
    for (std::span<const std::byte> left(piece_); !left.empty();) {
      const ssize_t count = ::write(fd_, left.data(), left.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return error(count < 0 ? errno : ENOSPC);
      left = left.subspan(static_cast<size_t>(count));
    }
    piece_.clear();
    return ok_status();
  }

  Status error(int why) const { return invalid_argument(path_, ": cannot be written: ", std::strerror(why)); }

  const std::string& path_;
  int fd_, why_not_open_;
  std::vector<std::byte> piece_;
};

}  // namespace

std::string safetensors_header(std::vector<SafetensorsTensor>& tensors, const SafetensorsMetadata& metadata) {
  std::stable_partition(tensors.begin(), tensors.end(),
                        [](const SafetensorsTensor& tensor) { return tensor.data.size() % kLineBytes == 0; });
  std::string header(kLengthBytes, '\0');
  const auto member = [&](std::string_view name) {
    header += header.ends_with('{') ? "" : ",";
    append_json_string(header, name);
    header += ':';
  };
  header += '{';
  member("__metadata__");
  header += '{';
  for (const auto& [key, value] : metadata) {
    member(key);
    append_json_string(header, value);
  }
  header += '}';
  size_t begin = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    const size_t end = begin + tensor.data.size();
    member(tensor.name);
    header += "{\"dtype\":";
    append_json_string(header, tensor.dtype);
    header += str_cat(",\"shape\":", shape_text(tensor.shape), ",\"data_offsets\":[", begin, ",", end, "]}");
    begin = end;
  }
  header += '}';
  header.resize(static_cast<size_t>(round_up(static_cast<int64_t>(header.size()), kPageBytes)), ' ');
  const uint64_t length = header.size() - kLengthBytes;
  for (size_t i = 0; i < kLengthBytes; ++i) header[i] = static_cast<char>(length >> (8 * i) & 0xFF);
  return header;
}

Status write_safetensors(const std::string& path, std::vector<SafetensorsTensor> tensors,
                         const SafetensorsMetadata& metadata, FunctionRef<bool()> goes_on) {
  const std::string header = safetensors_header(tensors, metadata);
  FileWriter file(path);
  RETURN_IF_ERROR(file.write(std::as_bytes(std::span(header)), goes_on));
  for (const SafetensorsTensor& tensor : tensors) RETURN_IF_ERROR(file.write(tensor.data, goes_on));
  return file.close();
}

}  // namespace transept
