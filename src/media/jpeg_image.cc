#include "media/jpeg_image.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include <jpeglib.h>  // needs <cstdio>

#include <jerror.h>

#include "media/image_pixels.h"
#include "media/jpeg_head.h"

namespace transept {
namespace {

constexpr size_t kBlockSize = DCTSIZE;
constexpr size_t kBlockBytes = sizeof(JBLOCK);
// Of libjpeg's pools, tables and rows' pointers, which do not grow with the picture.
constexpr size_t kFixedBytes = size_t{128} << 10;

enum class Step { kDone, kCut, kFailed };

// libjpeg's structures for one decode, for C's eyes: longjmp leaves its functions from anywhere within the library, so
// they have no object with a destructor, and what they change lives here.
struct Decoder {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf jump;
  int32_t width, height, num_components, max_scans;  // of the head
  bool has_many_scans;                               // of the head
  bool has_too_many_scans;
  bool is_out_of_memory;
  char message[JMSG_LENGTH_MAX];
};

Decoder& decoder_of(j_common_ptr jpeg) { return *static_cast<Decoder*>(jpeg->client_data); }

[[noreturn]] void on_error(j_common_ptr jpeg) {
  Decoder& decoder = decoder_of(jpeg);
  decoder.is_out_of_memory = decoder.errors.msg_code == JERR_OUT_OF_MEMORY;
  (*decoder.errors.format_message)(jpeg, decoder.message);
  std::longjmp(decoder.jump, 1);
}

void on_message(j_common_ptr /*jpeg*/) {}

// All scans are read before the first row comes.
void on_progress(j_common_ptr jpeg) {
  Decoder& decoder = decoder_of(jpeg);
  if (decoder.jpeg.input_scan_number <= decoder.max_scans) return;
  decoder.has_too_many_scans = true;
  std::longjmp(decoder.jump, 1);
}

void do_nothing(j_decompress_ptr /*jpeg*/) {}

// There is no more than the file: the library stops with what it has, and says so. As in Pillow, a file is not whole if
// bytes are missing that the library would look at.
boolean has_no_more(j_decompress_ptr /*jpeg*/) { return FALSE; }

void skip_bytes(j_decompress_ptr jpeg, long count) {
  jpeg_source_mgr& source = *jpeg->src;
  const size_t skipped = std::min(static_cast<size_t>(std::max(count, 0L)), source.bytes_in_buffer);
  source.next_input_byte += skipped;
  source.bytes_in_buffer -= skipped;
}

J_COLOR_SPACE output_space(int32_t num_components) {
  return num_components == 1 ? JCS_GRAYSCALE : num_components == 3 ? JCS_RGB : JCS_CMYK;
}

// Reads the library's head and, of many scans, all of them.
Step start(Decoder* decoder, const uint8_t* bytes, size_t size, size_t max_bytes) {
  decoder->jpeg.err = jpeg_std_error(&decoder->errors);
  decoder->jpeg.client_data = decoder;
  decoder->errors.error_exit = on_error;
  decoder->errors.output_message = on_message;
  if (setjmp(decoder->jump) != 0) return Step::kFailed;
  jpeg_create_decompress(&decoder->jpeg);
  decoder->jpeg.mem->max_memory_to_use = static_cast<long>(max_bytes);
  decoder->progress.progress_monitor = on_progress;
  decoder->jpeg.progress = &decoder->progress;
  decoder->source.init_source = do_nothing;
  decoder->source.fill_input_buffer = has_no_more;
  decoder->source.skip_input_data = skip_bytes;
  decoder->source.resync_to_restart = jpeg_resync_to_restart;
  decoder->source.term_source = do_nothing;
  decoder->source.next_input_byte = bytes;
  decoder->source.bytes_in_buffer = size;
  decoder->jpeg.src = &decoder->source;

  int found = JPEG_HEADER_TABLES_ONLY;
  while (found == JPEG_HEADER_TABLES_ONLY) found = jpeg_read_header(&decoder->jpeg, FALSE);
  if (found == JPEG_SUSPENDED) return Step::kCut;
  if (static_cast<int64_t>(decoder->jpeg.image_width) != decoder->width ||
      static_cast<int64_t>(decoder->jpeg.image_height) != decoder->height ||
      decoder->jpeg.num_components != decoder->num_components ||
      (jpeg_has_multiple_scans(&decoder->jpeg) != 0) != decoder->has_many_scans) {
    std::strcpy(decoder->message, "its head can be read in two ways");
    return Step::kFailed;
  }
  decoder->jpeg.out_color_space = output_space(decoder->num_components);
  return jpeg_start_decompress(&decoder->jpeg) ? Step::kDone : Step::kCut;
}

Step read_rows(Decoder* decoder, uint8_t** rows, uint32_t num_rows) {
  if (setjmp(decoder->jump) != 0) return Step::kFailed;
  const uint32_t first = decoder->jpeg.output_scanline;
  for (;;) {
    const uint32_t done = decoder->jpeg.output_scanline - first;
    if (done == num_rows) return Step::kDone;
    if (jpeg_read_scanlines(&decoder->jpeg, rows + done, num_rows - done) == 0) return Step::kCut;
  }
}

// What is behind the last row must be no error either; it may be cut.
Step finish(Decoder* decoder) {
  if (setjmp(decoder->jump) != 0) return Step::kFailed;
  return jpeg_finish_decompress(&decoder->jpeg) ? Step::kDone : Step::kCut;
}

// The library's memory, freed on every way out.
class OwnedDecoder {
 public:
  OwnedDecoder() : decoder_() {}
  ~OwnedDecoder() { jpeg_destroy_decompress(&decoder_.jpeg); }
  OwnedDecoder(const OwnedDecoder&) = delete;
  OwnedDecoder& operator=(const OwnedDecoder&) = delete;
  Decoder* get() { return &decoder_; }

 private:
  Decoder decoder_;
};

Status error_of(const Decoder& decoder, Step step) {
  const uint32_t row = decoder.jpeg.output_scanline;
  if (step == Step::kCut) return invalid_argument("ends early, at row ", row, " of ", decoder.height);
  if (decoder.has_too_many_scans) return invalid_argument("has more than ", decoder.max_scans, " scans");
  if (decoder.is_out_of_memory) return resource_exhausted("cannot be decoded: no memory");
  return invalid_argument("is damaged at row ", row, " of ", decoder.height, ": ", std::string_view(decoder.message));
}

// MULDIV255 of Pillow's ImagingUtils.h.
uint32_t multiply_shares(uint32_t a, uint32_t b) {
  const uint32_t product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// Rows of CMYK as they are stored, inverted, as Pillow makes RGB of them (Convert.c, cmyk2rgb).
void convert_cmyk(const uint8_t* cmyk, int32_t count, uint8_t* rgb) {
  for (int32_t i = 0; i < count; ++i, cmyk += 4, rgb += 3) {
    const uint32_t key = cmyk[3];
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(key - multiply_shares(255u - cmyk[c], key));
  }
}

void convert_grey(const uint8_t* grey, int32_t count, uint8_t* rgb) {
  for (int32_t i = 0; i < count; ++i, rgb += 3) rgb[0] = rgb[1] = rgb[2] = grey[i];
}

size_t ceil_of(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// libjpeg-turbo's own memory: jinit_d_main_controller, jinit_upsampler, jinit_d_coef_controller. Rows there have a
// multiple of 64 bytes and a pointer or three each.
size_t library_bytes(const JpegHead& head) {
  size_t max_h = 1, max_v = 1;
  for (const JpegHead::Component& component : head.components) {
    max_h = std::max(max_h, static_cast<size_t>(component.h_samples));
    max_v = std::max(max_v, static_cast<size_t>(component.v_samples));
  }
  size_t bytes = kFixedBytes;
  for (int32_t i = 0; i < head.num_components; ++i) {
    const auto h = static_cast<size_t>(head.components[static_cast<size_t>(i)].h_samples);
    const auto v = static_cast<size_t>(head.components[static_cast<size_t>(i)].v_samples);
    const size_t blocks_across = (static_cast<size_t>(head.width) * h + max_h * kBlockSize - 1) / (max_h * kBlockSize);
    const size_t blocks_down = (static_cast<size_t>(head.height) * v + max_v * kBlockSize - 1) / (max_v * kBlockSize);
    bytes += (ceil_of(blocks_across * kBlockSize, 64) + 32) * v * (kBlockSize + 2);
    bytes += (ceil_of(ceil_of(static_cast<size_t>(head.width), max_h), 64) + 32) * max_v;
    if (!head.has_many_scans) continue;
    bytes += ceil_of(blocks_down, v) * (ceil_of(blocks_across, h) * kBlockBytes + 32);
  }
  return bytes;
}

}  // namespace

StatusOr<std::unique_ptr<JpegImage>> JpegImage::open(std::span<const uint8_t> bytes, const ImageLimits& limits) {
  ASSIGN_OR_RETURN(const JpegHead head, read_jpeg_head(bytes));
  RETURN_IF_ERROR(check_image_size(head.width, head.height, limits));
  std::unique_ptr<JpegImage> image(new JpegImage);
  image->bytes_ = bytes;
  image->has_many_scans_ = head.has_many_scans;
  image->max_scans_ = limits.max_scans;
  ImageInfo& info = image->info_;
  info.format = ImageFormat::kJpeg;
  info.width = head.width;
  info.height = head.height;
  info.num_channels = head.num_components;
  info.orientation = head.orientation;
  info.decode_bytes = OrientedRows::bytes_needed(info) + library_bytes(head);
  // Rows of other colours, before they are RGB.
  if (head.num_components != 3) {
    info.decode_bytes += static_cast<size_t>(head.width * head.num_components) * OrientedRows::kGroup;
  }
  return image;
}

StatusOr<RgbImage> JpegImage::decode(ImageAlpha /*alpha*/) const {
  OrientedRows rows(info_);
  const int32_t num_components = info_.num_channels;
  const size_t row_bytes = static_cast<size_t>(info_.width) * static_cast<size_t>(num_components);
  std::vector<uint8_t> stored(num_components == 3 ? 0 : row_bytes * OrientedRows::kGroup);
  OwnedDecoder owned;
  Decoder* decoder = owned.get();
  decoder->width = info_.width;
  decoder->height = info_.height;
  decoder->num_components = num_components;
  decoder->has_many_scans = has_many_scans_;
  decoder->max_scans = max_scans_;

  Step step = start(decoder, bytes_.data(), bytes_.size(), info_.decode_bytes);
  for (int32_t y = 0; step == Step::kDone && y < info_.height; y += OrientedRows::kGroup) {
    const int32_t num_rows = std::min(OrientedRows::kGroup, info_.height - y);
    uint8_t* to[OrientedRows::kGroup];
    for (int32_t i = 0; i < num_rows; ++i) {
      to[i] = stored.empty() ? rows.row(y + i) : stored.data() + row_bytes * static_cast<size_t>(i);
    }
    step = read_rows(decoder, to, static_cast<uint32_t>(num_rows));
    for (int32_t i = 0; step == Step::kDone && !stored.empty() && i < num_rows; ++i) {
      const auto convert = num_components == 1 ? convert_grey : convert_cmyk;
      convert(to[i], info_.width, rows.row(y + i));
    }
  }
  if (step != Step::kDone) return error_of(*decoder, step);
  if (finish(decoder) == Step::kFailed) return error_of(*decoder, Step::kFailed);
  return rows.finish();
}

}  // namespace transept
