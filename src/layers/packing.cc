#include "layers/packing.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/checked_math.h"
#include "layers/packed_source.h"
#include "ops/gemm.h"

namespace transept {
namespace {

// Of the checkpoint's pages no more than about this is in memory at a time.
constexpr int64_t kPackBytes = int64_t{16} << 20;

bool is_quantized(const WeightFormat& format) { return format.is_codes() || format.is_small_float(); }

// Whether panels hold these nibbles, and their products have the leaves that float32's have (ops/gemm.h), so that the
// same bits come of any number of ranks.
bool keeps_nibbles(const MatrixToLoad& matrix, const WeightFormat& format) {
  if (!format.is_nibbles() || !nibbles_hold(format, matrix.k)) return false;
  const bool has_leaves = num_leaves(matrix.k, {format}) == num_leaves(matrix.k, {kFloat32Format});
  return has_leaves && matrix.columns.begin % kNibbleInputs == 0 && matrix.columns.size() % kNibbleInputs == 0;
}

// Nibbles are widened where they are used. Other codes mean float32 numbers: products with them as they are would round
// the inputs, for which nobody asked. Small floats have scales.
WeightFormat without_loss(const MatrixToLoad& matrix, const WeightFormat& stored) {
  return is_quantized(stored) && !keeps_nibbles(matrix, stored) ? kFloat32Format : stored;
}

InputRounding int8_inputs(LayerInputs inputs) {
  switch (inputs) {
    case LayerInputs::kConvolution: return InputRounding::kWide;
    case LayerInputs::kOutliers: return InputRounding::kOutliers;
    default: return InputRounding::kUsual;
  }
}

void note(const PackOptions& options, const MatrixToLoad& matrix, const PackedMatrix& packed,
          const WeightFormat& stored) {
  if (options.report == nullptr) return;
  options.report->push_back({matrix.name,
                             packed.format(),
                             packed.bytes(),
                             packed.n(),
                             packed.k(),
                             stored,
                             packed.is_view(),
                             {},
                             packed.views(),
                             matrix.n,
                             matrix.k});
}

template <typename T>
std::span<const T> as(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

bool is_aligned(std::span<const std::byte> bytes) {
  return reinterpret_cast<uintptr_t>(bytes.data()) % Arena::kAlignment == 0;
}

// A file that another program wrote anew may hold its tensors anywhere: they move to memory of our own then.
std::span<const std::byte> copied(std::span<const std::byte> bytes, PagePool& pool) {
  const std::span<std::byte> copy = pool.allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return copy;
}

// The tensors of a matrix, which must have the shapes that follow from its size. `format` has the tag's weights.
StatusOr<PackedMatrix> view_packed(const PackOptions& options, WeightMap& weights, const std::string& name,
                                   const PackTag::Matrix& tag, const PackedFormat& format) {
  const std::string panels_name = str_cat(name, kPackedPanels);
  PackedBytes bytes;
  std::shared_ptr<PagePool> pool;  // of copies
  const auto part = [&](std::string_view suffix, std::string_view dtype,
                        const std::vector<int64_t>& shape) -> StatusOr<std::span<const std::byte>> {
    ASSIGN_OR_RETURN(const std::span<const std::byte> found, weights.get_bytes(str_cat(name, suffix), dtype, shape));
    if (is_aligned(found)) return found;
    pool = options.pool;
    return copied(found, *pool);
  };
  const WeightFormat& held = tag.format.weights;
  const auto refuse = [&](const Status& status) {
    return with_param(with_prefix(status, str_cat(weights.source(), ": tensor \"", panels_name, "\"")), panels_name);
  };
  if (!has_panels(held) || !holds_inputs(held, tag.k)) {
    return refuse(invalid_argument(weight_format_name(held), " cannot hold a matrix of ", tag.k, " inputs"));
  }
  std::vector<int64_t> shape = panels_shape(tag.n, tag.k, held);
  // Of nibbles the matrix says which sizes there can be.
  const std::optional<WeightMap::Form> form = weights.form_of(panels_name);
  if (held.is_nibbles() && form.has_value()) shape = {std::ssize(form->data)};
  ASSIGN_OR_RETURN(bytes.panels, part(kPackedPanels, safetensors_dtype(panels_dtype(held)), shape));
  if (held == kInt8Format) {
    const int64_t outputs = round_up(tag.n, kPanelColumns);
    ASSIGN_OR_RETURN(const std::span<const std::byte> scales, part(kPackedScales, "F32", {outputs}));
    ASSIGN_OR_RETURN(const std::span<const std::byte> sums, part(kPackedSums, "I32", {outputs}));
    bytes.scales = as<float>(scales);
    bytes.sums = as<int32_t>(sums);
  }
  StatusOr<PackedMatrix> packed = PackedMatrix::view(tag.n, tag.k, format, bytes, pool);
  if (!packed.ok()) return refuse(packed.status());
  return packed;
}

// Rows of one source.
struct SourceRows {
  const MatrixSource* source;
  IndexRange rows;
};

// What the rows to keep are in sources that stand side by side.
std::vector<SourceRows> rows_of(const MatrixSources& sources, const std::vector<IndexRange>& rows) {
  std::vector<SourceRows> parts;
  for (const IndexRange& range : rows) {
    int64_t first = 0;
    for (const std::unique_ptr<MatrixSource>& source : sources) {
      const IndexRange own{std::max<int64_t>(range.begin - first, 0), std::min(range.end - first, source->n())};
      if (own.size() > 0) parts.push_back({source.get(), own});
      first += source->n();
    }
  }
  return parts;
}

bool has_int8_codes(const MatrixSource& source) { return source.format() == kInt8Format && source.coded() != nullptr; }

// The codes of a source's row in int8, and their scale: the file's own, or those of the whole row rounded.
float read_int8(const MatrixSource& source, int64_t row, IndexRange columns, std::span<int8_t> codes) {
  float scale = 0;
  if (has_int8_codes(source)) {
    source.coded()->read_codes(row, columns, codes);
    source.coded()->read_scales(row, std::span(&scale, 1), {});
    return scale;
  }
  std::vector<float> weights(static_cast<size_t>(source.k()));
  std::vector<int8_t> whole(weights.size());
  source.read_rows(row, 1, {0, source.k()}, weights);
  scale = round_to_int8(weights, whole);
  std::copy_n(whole.data() + columns.begin, columns.size(), codes.data());
  return scale;
}

// What 4-bit codes of the inputs to keep mean beside their scales. Inputs say their groups where these are no runs.
struct KeptMeanings {
  std::span<const float> table = {};
  std::vector<int32_t> input_groups = {};
  int64_t num_groups = 0;

  NibbleMeanings view() const { return {table, input_groups, num_groups}; }
};

bool cuts_groups(const MatrixToLoad& matrix, const WeightFormat& format) {
  return format.group != 0 ? matrix.columns.begin % format.group != 0 || matrix.columns.size() % format.group != 0
                           : matrix.columns.size() != matrix.k;
}

KeptMeanings kept_meanings(const MatrixToLoad& matrix, const MatrixSources& sources, const WeightFormat& format) {
  KeptMeanings kept;
  const CodedMatrix* coded = sources.front()->format() == format ? sources.front()->coded() : nullptr;
  if (coded != nullptr) kept.table = coded->table();
  const bool is_permuted = coded != nullptr && !coded->input_groups().empty();
  if (!is_permuted && !cuts_groups(matrix, format)) return kept;
  const int64_t group = format.group == 0 ? matrix.k : format.group;
  for (int64_t j = matrix.columns.begin; j < matrix.columns.end; ++j) {
    kept.input_groups.push_back(static_cast<int32_t>(is_permuted ? coded->group_of(j) : j / group));
  }
  kept.num_groups = matrix.k / group;
  return kept;
}

// Codes of one output, which are the file's or those of the rounded row, and of its groups those that stay.
void pack_nibbles(const SourceRows& part, IndexRange columns, int64_t row, PackedMatrix& packed) {
  const WeightFormat& format = packed.format().weights;
  const MatrixSource& source = *part.source;
  const CodedMatrix* coded = source.format() == format ? source.coded() : nullptr;
  const int64_t group = format.group == 0 ? source.k() : format.group;
  std::vector<int8_t> codes(static_cast<size_t>(source.k()));
  std::vector<float> scales(static_cast<size_t>(source.k() / group)), weights(coded == nullptr ? codes.size() : 0);
  std::vector<int16_t> zeros(format.has_zero ? scales.size() : 0);
  const std::span<int8_t> kept =
      std::span(codes).subspan(static_cast<size_t>(columns.begin), static_cast<size_t>(columns.size()));
  const auto first = packed.nibbles().has_input_groups ? 0 : static_cast<size_t>(columns.begin / group);
  const auto count = static_cast<size_t>(packed.nibbles().num_groups);
  for (int64_t i = 0; i < part.rows.size(); ++i) {
    if (coded != nullptr) {
      coded->read_codes(part.rows.begin + i, columns, kept);
      coded->read_scales(part.rows.begin + i, scales, zeros);
    } else {
      source.read_rows(part.rows.begin + i, 1, {0, source.k()}, weights);
      const auto size = static_cast<size_t>(group);
      for (size_t g = 0; g < scales.size(); ++g) {
        scales[g] = round_to_int4(std::span(weights).subspan(g * size, size), std::span(codes).subspan(g * size, size));
      }
    }
    packed.set_nibbles(
        row + i, kept, std::span(scales).subspan(first, count),
        zeros.empty() ? std::span<const int16_t>() : std::span<const int16_t>(zeros).subspan(first, count));
  }
}

void pack_some(const SourceRows& part, IndexRange columns, int64_t row, PackedMatrix& packed) {
  if (packed.is_nibbles()) return pack_nibbles(part, columns, row, packed);
  const int64_t count = part.rows.size();
  const auto num_values = static_cast<size_t>(count * columns.size());
  const bool is_part = columns.size() < part.source->k();
  if (packed.format().weights != kInt8Format || !(is_part || has_int8_codes(*part.source))) {
    std::vector<float> values(num_values);
    part.source->read_rows(part.rows.begin, count, columns, values);
    return packed.set_rows(row, count, values);
  }
  std::vector<int8_t> codes(num_values);
  std::vector<float> scales(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<size_t>(i * columns.size());
    scales[static_cast<size_t>(i)] = read_int8(*part.source, part.rows.begin + i, columns,
                                               std::span(codes).subspan(place, static_cast<size_t>(columns.size())));
  }
  packed.set_codes(row, count, codes, scales);
}

// Packs rows of one source behind `row`: a task for each panel's worth of rows, or several, so that threads do not
// share the cache lines of a panel more than at its ends.
void pack_rows(const SourceRows& part, IndexRange columns, int64_t row, PackedMatrix& packed, ThreadPool& threads) {
  const int64_t row_bytes = std::max<int64_t>(part.source->k() * part.source->format().bits / 8, 1);
  const int64_t task_rows = round_up(part.source->rows_at_once(), kPanelColumns);
  const int64_t step = round_up(std::max(kPackBytes / row_bytes, task_rows), task_rows);
  for (int64_t from = part.rows.begin; from < part.rows.end; from += step) {
    const int64_t to = std::min(part.rows.end, from + step);
    threads.parallel_for(ceil_div(to - from, task_rows), [&](int64_t task, int) {
      const int64_t begin = from + task * task_rows, end = std::min(to, begin + task_rows);
      pack_some({part.source, {begin, end}}, columns, row + begin - part.rows.begin, packed);
    });
    part.source->release_rows(from, to - from);
  }
}

// The same by inputs, of which a file and panels have the outputs side by side: nothing is turned, and the file is read
// forward.
void pack_inputs(const SourceRows& part, IndexRange columns, int64_t row, PackedMatrix& packed, ThreadPool& threads) {
  constexpr int64_t kInputs = 16, kOutputs = 1024;  // of a task, and of its steps: their numbers stay in the cache
  const int64_t input_bytes = std::max<int64_t>(part.source->n() * part.source->format().bits / 8, 1);
  const int64_t step = round_up(std::max(kPackBytes / input_bytes, kInputs), kInputs);
  for (int64_t from = 0; from < columns.size(); from += step) {
    const int64_t to = std::min(columns.size(), from + step);
    threads.parallel_for(ceil_div(to - from, kInputs), [&](int64_t task, int) {
      const int64_t begin = from + task * kInputs, count = std::min(to - begin, kInputs);
      std::vector<float> values(static_cast<size_t>(count * std::min(kOutputs, part.rows.size())));
      for (int64_t first = part.rows.begin; first < part.rows.end; first += kOutputs) {
        const IndexRange rows{first, std::min(part.rows.end, first + kOutputs)};
        const std::span<float> some = std::span(values).first(static_cast<size_t>(count * rows.size()));
        part.source->read_inputs(columns.begin + begin, count, rows, some);
        packed.set_inputs(row + first - part.rows.begin, rows.size(), begin, count, some);
      }
    });
    part.source->release_inputs(columns.begin + from, to - from);
  }
}

// The same for int8, whose scales belong to all inputs of an output: a task for so many outputs that their numbers stay
// in the cache.
void pack_int8_inputs(const SourceRows& part, int64_t row, PackedMatrix& packed, ThreadPool& threads) {
  constexpr int64_t kNumbers = int64_t{1} << 15;  // of a task
  const int64_t k = part.source->k();
  const int64_t outputs =
      std::clamp(kNumbers / std::max<int64_t>(k, 1) / kPanelColumns, int64_t{1}, int64_t{8}) * kPanelColumns;
  std::vector<std::vector<float>> numbers(static_cast<size_t>(threads.num_threads()));
  threads.parallel_for(ceil_div(part.rows.size(), outputs), [&](int64_t task, int thread) {
    const int64_t begin = task * outputs, end = std::min(part.rows.size(), begin + outputs);
    std::vector<float>& own = numbers[static_cast<size_t>(thread)];
    own.resize(static_cast<size_t>(k * outputs));
    const std::span<float> some = std::span(own).first(static_cast<size_t>(k * (end - begin)));
    part.source->read_inputs(0, k, {part.rows.begin + begin, part.rows.begin + end}, some);
    packed.set_inputs(row + begin, end - begin, 0, k, some);
  });
  part.source->release_rows(part.rows.begin, part.rows.size());
}

void pack_part(const SourceRows& part, IndexRange columns, int64_t row, PackedMatrix& packed, ThreadPool& threads) {
  const MatrixSource& source = *part.source;
  const WeightFormat& format = packed.format().weights;
  if (!source.is_by_input() || packed.is_nibbles()) return pack_rows(part, columns, row, packed, threads);
  if (!format.is_codes()) return pack_inputs(part, columns, row, packed, threads);
  const bool rounds_whole = format == kInt8Format && columns.size() == source.k() && !has_int8_codes(source);
  if (rounds_whole) return pack_int8_inputs(part, row, packed, threads);
  pack_rows(part, columns, row, packed, threads);
}

int64_t num_rows(const MatrixToLoad& matrix) {
  int64_t count = 0;
  for (const IndexRange& range : matrix.rows) count += range.size();
  return count;
}

PackedMatrix pack(const PackOptions& options, const MatrixToLoad& matrix, const MatrixSources& sources,
                  const PackedFormat& format) {
  const KeptMeanings kept =
      format.weights.is_nibbles() ? kept_meanings(matrix, sources, format.weights) : KeptMeanings();
  PackedFormat of = format;
  if (!kept.input_groups.empty() && of.inputs == InputRounding::kGroups) of.inputs = InputRounding::kUsual;
  PackedMatrix packed(num_rows(matrix), matrix.columns.size(), of, options.pool, kept.view());
  if (options.sizes_only) return packed;
  int64_t row = 0;
  for (const SourceRows& part : rows_of(sources, matrix.rows)) {
    pack_part(part, matrix.columns, row, packed, options.threads);
    row += part.rows.size();
  }
  return packed;
}

// Whether both are codes, in groups of the same inputs, that mean the same beside scales and zeros.
bool mean_alike(const MatrixSource& one, const MatrixSource& other) {
  const CodedMatrix *a = one.coded(), *b = other.coded();
  return a != nullptr && b != nullptr && a->format() == b->format() && std::ranges::equal(a->table(), b->table()) &&
         std::ranges::equal(a->input_groups(), b->input_groups());
}

WeightFormat common_format(const MatrixSources& sources) {
  const WeightFormat& first = sources.front()->format();
  const bool is_mixed = std::ranges::any_of(sources, [&](const auto& source) { return source->format() != first; });
  return is_mixed ? kFloat32Format : first;
}

// Numbers that the file has rounded already are rounded to no other floats: a type that is asked for applies to what is
// not quantised. Codes are what int8 and its like make of them.
PackedFormat without_second_rounding(const PackedFormat& wanted, bool is_quantized) {
  const bool has_codes = wanted.weights.is_codes() || wanted.weights.is_nibbles();
  return is_quantized && !has_codes ? PackedFormat{kFloat32Format} : wanted;
}

std::string format_text(const PackedFormat& format) {
  return str_cat(weight_format_name(format.weights), format.has_wide_inputs() ? " with wide inputs" : "");
}

// Inputs that are rounded together stay together: otherwise the bits would tell how many ranks there are.
Status check_whole_groups(const WeightMap& weights, const MatrixToLoad& matrix, const PackedFormat& format) {
  if (format.inputs != InputRounding::kGroups || !cuts_groups(matrix, format.weights)) return ok_status();
  return with_param(unimplemented(weights.source(), ": ", matrix.name, ": ranks would divide groups of ",
                                  format.weights.group, " inputs: fewer ranks, or no --quantization int4"),
                    matrix.name);
}

// The matrix of a packed folder.
StatusOr<PackedMatrix> load_from_folder(const PackOptions& options, WeightMap& weights, const MatrixToLoad& matrix,
                                        const PackTag::Matrix& of) {
  const auto refuse = [&](auto... reason) {
    return with_param(invalid_argument(weights.source(), ": packed matrix \"", matrix.name, "\": ", reason...),
                      matrix.name);
  };
  const int64_t layout = weights.pack_tag()->layout;
  if (layout < 1 || layout > kPackedLayout) {
    return refuse("layout ", layout, " is not known to this version, which has 1 to ", kPackedLayout,
                  ": pack the original checkpoint again");
  }
  if (of.n != matrix.n || of.k != matrix.k) {
    return refuse("is [", of.n, ", ", of.k, "], expected [", matrix.n, ", ", matrix.k, "]");
  }
  const PackedFormat& held = of.format;
  PackedFormat chosen = without_second_rounding(choose_format(options, matrix, of.stored), is_quantized(of.stored));
  // 4-bit codes that were widened, as layout 1 has them all, mean the same.
  const bool widens = of.stored.is_nibbles() && chosen == PackedFormat{of.stored};
  if (widens && held == PackedFormat{kFloat32Format}) chosen = held;
  const PackedFormat wanted = options.as_packed ? held : chosen;
  // What inputs are rounded to shows in the product alone, not in the bytes.
  const bool fits = wanted.weights == held.weights && wanted.has_wide_inputs() == held.has_wide_inputs();
  const PackTag& tag = *weights.pack_tag();
  CHECK(tag.num_ranks == 1 || (tag.rank == options.ranks.rank && tag.num_ranks == options.ranks.count), matrix.name);
  PackTag::Matrix in_file = of;
  if (tag.num_ranks > 1) {
    in_file.n = num_rows(matrix);
    in_file.k = matrix.columns.size();
  }
  ASSIGN_OR_RETURN(PackedMatrix packed, view_packed(options, weights, matrix.name, in_file, fits ? wanted : held));
  if (tag.num_ranks > 1 && !fits) {
    return refuse(
        "is packed as ", format_text(packed.format()), " for ", tag.num_ranks, " ranks; ", format_text(wanted),
        " is made of a whole matrix alone: give the original checkpoint, or leave --dtype and --quantization out");
  }
  // Codes that became float32 are not found again.
  const bool keeps_all = held.weights == of.stored || (held.weights == kFloat32Format && !of.stored.is_codes());
  if (!fits && !keeps_all) {
    return refuse("is packed as ", format_text(packed.format()), " and was ", weight_format_name(of.stored), "; ",
                  format_text(wanted), " cannot be made of that: give the original checkpoint, or leave --dtype and ",
                  "--quantization out");
  }
  const bool is_whole = packed.n() == num_rows(matrix) && packed.k() == matrix.columns.size();
  if (fits && is_whole) return packed;
  RETURN_IF_ERROR(check_whole_groups(weights, matrix, wanted));
  MatrixSources sources;
  sources.push_back(make_packed_source(packed));
  return pack(options, matrix, sources, wanted);
}

}  // namespace

PackOptions PackOptions::of_elsewhere() const {
  PackOptions options = *this;
  options.sizes_only = true;
  options.report = &elsewhere->layers;
  options.pool = elsewhere->pool;
  options.elsewhere = nullptr;
  return options;
}

PackedFormat choose_format(const PackOptions& options, const MatrixToLoad& matrix, const WeightFormat& stored) {
  const WeightFormat own = without_loss(matrix, stored), storage = options.storage.value_or(own);
  const bool is_int4 = options.storage.has_value() && storage.is_nibbles();
  if (storage == kInt8Format || is_int4) {
    const bool is_narrow = std::min(matrix.n, matrix.k) < options.least_int8_width;
    if (matrix.inputs == LayerInputs::kRaw || matrix.k > kMaxInt8Inputs || is_narrow) return {own};
    const auto rounds = [](const WeightFormat& codes) {
      return PackedFormat{codes, codes.is_codes() ? InputRounding::kGroups : InputRounding::kUsual};
    };
    if (is_int4 && own.is_nibbles()) return rounds(own);
    if (is_int4 && matrix.inputs != LayerInputs::kConvolution && keeps_nibbles(matrix, storage)) return rounds(storage);
    return {kInt8Format, int8_inputs(matrix.inputs)};
  }
  // A checkpoint's codes are not rounded a second time; they are float32 only for who asked for that.
  if (own.is_nibbles() && storage != kFloat32Format) return {own};
  // Only for who asked for it by name: otherwise a checkpoint's 16 bits would change its answers.
  const bool rounds = options.storage == kBFloat16Format && matrix.inputs != LayerInputs::kRaw;
  return {storage, rounds ? InputRounding::kBFloat16 : InputRounding::kUsual};
}

std::vector<size_t> divide_by_codes(const PackOptions& options, const MatrixToLoad& matrix,
                                    const MatrixSources& sources) {
  const bool keeps_all = std::ranges::all_of(sources, [&](const auto& source) {
    const WeightFormat& format = source->format();
    return source->coded() != nullptr && format.is_nibbles() &&
           choose_format(options, matrix, format).weights == format;
  });
  if (!keeps_all) return {sources.size()};
  std::vector<size_t> counts;
  for (size_t i = 0; i < sources.size(); ++i) {
    const bool goes_on = i > 0 && mean_alike(*sources[i - 1], *sources[i]);
    goes_on ? ++counts.back() : counts.emplace_back(1);
  }
  return counts;
}

StatusOr<PackedMatrix> load_matrix(const PackOptions& options, WeightMap& weights, const MatrixToLoad& matrix,
                                   FunctionRef<StatusOr<MatrixSources>()> open) {
  if (const PackTag* tag = weights.pack_tag(); tag != nullptr) {
    if (const auto found = tag->matrices.find(matrix.name); found != tag->matrices.end()) {
      ASSIGN_OR_RETURN(PackedMatrix packed, load_from_folder(options, weights, matrix, found->second));
      note(options, matrix, packed, found->second.stored);
      return packed;
    }
  }
  ASSIGN_OR_RETURN(const MatrixSources sources, open());
  const WeightFormat stored = common_format(sources);
  const bool has_quantized = std::ranges::any_of(sources, [](const auto& source) { return source->is_quantized(); });
  // Nibbles that are not given as codes are numbers.
  const bool gives_codes =
      std::ranges::all_of(sources, [&](const auto& source) { return mean_alike(*sources[0], *source); });
  const WeightFormat given = stored.is_nibbles() && !gives_codes ? kFloat32Format : stored;
  PackedFormat format = without_second_rounding(choose_format(options, matrix, given), has_quantized);
  // Others beside codes in groups of any inputs would be rounded in other groups.
  const bool has_order = std::ranges::any_of(sources, [](const auto& source) {
    return source->coded() != nullptr && !source->coded()->input_groups().empty();
  });
  if (format.weights.is_nibbles() && has_order && !gives_codes) format = {kFloat32Format};
  RETURN_IF_ERROR(check_whole_groups(weights, matrix, format));
  PackedMatrix packed = pack(options, matrix, sources, format);
  note(options, matrix, packed, stored);
  return packed;
}

namespace {

// What the file has as codes or small floats and memory in larger numbers: no kernel reads it as it is.
std::string widened_text(const std::vector<PackedLayer>& layers) {
  struct Widened {
    uint64_t stored = 0, kept = 0, count = 0;
  };
  std::map<std::string, Widened> formats;
  for (const PackedLayer& layer : layers) {
    const bool is_small = layer.stored.is_codes() || layer.stored.is_small_float();
    if (!is_small || layer.format.weights.bits <= layer.stored.bits) continue;
    Widened& one = formats[weight_format_name(layer.stored)];
    one.stored += static_cast<uint64_t>(layer.n * layer.k * layer.stored.bits / 8);
    one.kept += layer.bytes;
    ++one.count;
  }
  std::string text;
  for (const auto& [name, one] : formats) {
    text += str_cat("; widened from ", name, ": ", one.count, one.count == 1 ? " matrix" : " matrices", ", ",
                    format_bytes(one.stored), " to ", format_bytes(one.kept));
  }
  return text;
}

// By how inputs are rounded: of one scale for all rows, without the scale.
std::string inputs_text(const std::vector<PackedLayer>& layers) {
  std::map<std::string, int64_t> counts;
  for (const PackedLayer& layer : layers) {
    for (const auto& [name, inputs] : layer.inputs) {
      std::string kind = input_quantization_name(inputs);
      constexpr std::string_view kTensor = "-tensor";
      if (inputs.is_static()) kind.resize(kind.find(kTensor) + kTensor.size());
      ++counts[kind];
    }
  }
  std::string text;
  for (const auto& [kind, count] : counts) {
    text += str_cat(text.empty() ? "; inputs rounded as the checkpoint says: " : ", ", kind, " in ", count,
                    count == 1 ? " matrix" : " matrices");
  }
  return text;
}

}  // namespace

std::string storage_text(const std::vector<PackedLayer>& layers) {
  std::vector<std::string> parts;
  size_t mapped = 0;
  std::vector<WeightFormat> formats;
  for (const PackedLayer& layer : layers) {
    const WeightFormat& format = layer.format.weights;
    if (format.is_nibbles() && !std::ranges::count(formats, format)) formats.push_back(format);
  }
  for (const WeightFormat& format : {kInt8Format, kFloat16Format, kBFloat16Format, kFloat32Format}) {
    formats.push_back(format);
  }
  for (const WeightFormat& format : formats) {
    size_t bytes = 0, count = 0;
    for (const PackedLayer& layer : layers) {
      if (layer.format.weights != format) continue;
      bytes += layer.bytes;
      mapped += layer.is_mapped ? layer.bytes : 0;
      ++count;
    }
    if (count == 0) continue;
    parts.push_back(str_cat(weight_format_name(format), " ", format_bytes(bytes), " in ", count,
                            count == 1 ? " matrix" : " matrices"));
  }
  return join(parts, ", ") + (mapped > 0 ? str_cat("; ", format_bytes(mapped), " of them mapped") : std::string()) +
         widened_text(layers) + inputs_text(layers);
}

}  // namespace transept
