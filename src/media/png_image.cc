#include "media/png_image.h"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "media/image_pixels.h"
#include "media/png_pixels.h"

namespace transept {
namespace {

// Of libpng's and zlib's structures: those of inflate have 32 KiB of window and some 10 of tables.
constexpr size_t kFixedBytes = size_t{96} << 10;
constexpr uint8_t kSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
// libpng wants a palette and makes nothing of it here: PngPixels has the file's.
constexpr uint8_t kAnyPalette[] = {0, 0, 0, 3, 'P', 'L', 'T', 'E', 0, 0, 0, 0, 0, 0, 0};

// Adam7: where a pass begins and how far its pixels are apart. Without interlace there is one pass.
struct Pass {
  int32_t first_x, first_y, step_x, step_y;

  int32_t width(int32_t of) const { return (of - first_x + step_x - 1) / step_x; }
  int32_t height(int32_t of) const { return (of - first_y + step_y - 1) / step_y; }
};
constexpr Pass kPasses[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                            {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
constexpr Pass kWhole = {0, 0, 1, 1};

// What libpng's callbacks work on, for C's eyes: longjmp leaves the library from anywhere, so the functions that call
// it have no object with a destructor. The picture is borrowed; a callback allocates nothing.
struct Decoder {
  png_structp png;
  png_infop info;
  std::jmp_buf jump;
  char message[128];  // the first that the library gave
  bool is_out_of_memory;

  const PngPixels* pixels;
  OrientedRows* rows;
  uint8_t* pass_row;  // RGB; null without interlace
  int32_t width, height;
  bool is_interlaced;
  int32_t row;  // of the picture, behind the last that came
  int64_t num_rows_left;
};

void keep_message(Decoder& decoder, const char* message) {
  if (decoder.message[0] == '\0') std::strncpy(decoder.message, message, sizeof decoder.message - 1);
}

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  Decoder& decoder = *static_cast<Decoder*>(png_get_error_ptr(png));
  keep_message(decoder, message);
  std::longjmp(decoder.jump, 1);
}

void on_warning(png_structp png, png_const_charp message) {
  keep_message(*static_cast<Decoder*>(png_get_error_ptr(png)), message);
}

png_voidp on_malloc(png_structp png, png_alloc_size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) static_cast<Decoder*>(png_get_mem_ptr(png))->is_out_of_memory = true;
  return memory;
}

void on_free(png_structp /*png*/, png_voidp memory) { std::free(memory); }

// Without png_set_interlace_handling the rows of the passes come as they are stored.
void on_info(png_structp png, png_infop /*info*/) { png_start_read_image(png); }

void on_row(png_structp png, png_bytep row, png_uint_32 index, int pass_index) {
  Decoder& decoder = *static_cast<Decoder*>(png_get_progressive_ptr(png));
  if (row == nullptr || decoder.num_rows_left == 0) return;
  const Pass& pass = decoder.is_interlaced ? kPasses[pass_index] : kWhole;
  const int32_t y = pass.first_y + static_cast<int32_t>(index) * pass.step_y;
  const int32_t count = pass.width(decoder.width);
  uint8_t* const rgb = decoder.is_interlaced ? decoder.pass_row : decoder.rows->row(y);
  decoder.pixels->convert(row, count, rgb);
  if (decoder.is_interlaced) decoder.rows->put(y, pass.first_x, pass.step_x, count, rgb);
  decoder.row = y + 1;
  --decoder.num_rows_left;
}

bool create(Decoder* decoder, size_t max_chunk_bytes) {
  if (setjmp(decoder->jump) != 0) return false;
  decoder->png =
      png_create_read_struct_2(PNG_LIBPNG_VER_STRING, decoder, on_error, on_warning, decoder, on_malloc, on_free);
  if (decoder->png == nullptr) return false;
  decoder->info = png_create_info_struct(decoder->png);
  if (decoder->info == nullptr) return false;
  png_set_user_limits(decoder->png, static_cast<png_uint_32>(decoder->width),
                      static_cast<png_uint_32>(decoder->height));
  png_set_chunk_malloc_max(decoder->png, max_chunk_bytes);
  // Checksums up to the data are checked (png_head.h); Pillow leaves those of the data to zlib's.
  png_set_crc_action(decoder->png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
  png_set_benign_errors(decoder->png, 1);
  png_set_progressive_read_fn(decoder->png, decoder, on_info, on_row, nullptr);
  return true;
}

// libpng reads the bytes, though it asks for more.
bool feed(Decoder* decoder, const uint8_t* bytes, size_t size) {
  if (setjmp(decoder->jump) != 0) return false;
  png_process_data(decoder->png, decoder->info, const_cast<png_bytep>(bytes), size);
  return true;
}

// The library's memory, freed on every way out.
class OwnedDecoder {
 public:
  OwnedDecoder() : decoder_() {}
  ~OwnedDecoder() { png_destroy_read_struct(&decoder_.png, &decoder_.info, nullptr); }
  OwnedDecoder(const OwnedDecoder&) = delete;
  OwnedDecoder& operator=(const OwnedDecoder&) = delete;
  Decoder* get() { return &decoder_; }

 private:
  Decoder decoder_;
};

// Chunks of data that follow each other are one stream; a picture is whole when its last row is there.
bool feed_image(Decoder* decoder, std::span<const uint8_t> bytes) {
  while (decoder->num_rows_left > 0) {
    const StatusOr<PngChunk> chunk = png_chunk_at(bytes);
    if (!chunk.ok() || chunk->name != png_chunk_name("IDAT")) return true;
    if (!feed(decoder, chunk->whole.data(), chunk->whole.size())) return false;
    bytes = bytes.subspan(chunk->whole.size());
  }
  return true;
}

int64_t count_rows(int32_t width, int32_t height, bool is_interlaced) {
  if (!is_interlaced) return height;
  int64_t count = 0;
  for (const Pass& pass : kPasses) count += pass.width(width) > 0 ? pass.height(height) : 0;
  return count;
}

Status error_of(const Decoder& decoder) {
  if (decoder.is_out_of_memory) return resource_exhausted("cannot be decoded: no memory");
  if (decoder.message[0] == '\0') return invalid_argument("ends early, at row ", decoder.row, " of ", decoder.height);
  return invalid_argument("is damaged at row ", decoder.row, " of ", decoder.height, ": ",
                          std::string_view(decoder.message));
}

}  // namespace

StatusOr<std::unique_ptr<PngImage>> PngImage::open(std::span<const uint8_t> bytes, const ImageLimits& limits) {
  ASSIGN_OR_RETURN(const PngHead head, read_png_head(bytes));
  RETURN_IF_ERROR(check_image_size(head.width, head.height, limits));
  std::unique_ptr<PngImage> image(new PngImage);
  image->head_ = head;
  image->max_chunk_bytes_ = limits.max_chunk_bytes;
  ImageInfo& info = image->info_;
  info.format = ImageFormat::kPng;
  info.width = static_cast<int32_t>(head.width);
  info.height = static_cast<int32_t>(head.height);
  info.num_channels = head.color != PngColor::kPalette ? head.num_channels() : head.is_transparent ? 4 : 3;
  info.orientation = head.orientation;
  // Two stored rows of libpng's, of whole groups of 8 pixels, and one of a pass.
  const size_t pixel_bits = static_cast<size_t>(head.num_channels()) * head.bit_depth;
  const size_t row_bytes = (size_t{head.width} + 7) / 8 * pixel_bits + 128;
  info.decode_bytes = OrientedRows::bytes_needed(info) + kFixedBytes + 2 * row_bytes;
  if (head.is_interlaced) info.decode_bytes += size_t{3} * head.width;
  return image;
}

StatusOr<RgbImage> PngImage::decode(ImageAlpha alpha) const {
  const PngPixels pixels(head_, alpha);
  OrientedRows rows(info_);
  std::vector<uint8_t> pass_row(head_.is_interlaced ? size_t{3} * head_.width : 0);
  OwnedDecoder owned;
  Decoder* decoder = owned.get();
  decoder->pixels = &pixels;
  decoder->rows = &rows;
  decoder->pass_row = pass_row.data();
  decoder->width = info_.width;
  decoder->height = info_.height;
  decoder->is_interlaced = head_.is_interlaced;
  decoder->num_rows_left = count_rows(info_.width, info_.height, head_.is_interlaced);

  const bool is_read = create(decoder, max_chunk_bytes_) && feed(decoder, kSignature, sizeof kSignature) &&
                       feed(decoder, head_.header.data(), head_.header.size()) &&
                       (head_.color != PngColor::kPalette || feed(decoder, kAnyPalette, sizeof kAnyPalette)) &&
                       feed_image(decoder, head_.image);
  // A flaw behind the last row is none.
  if (decoder->num_rows_left > 0 || (!is_read && decoder->is_out_of_memory)) return error_of(*decoder);
  return rows.finish();
}

}  // namespace transept
