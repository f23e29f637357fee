#include "foreign/marian_options.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/quoted.h"
#include "foreign/marian_yaml.h"

namespace transept {
namespace {

constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024;

std::optional<int64_t> number_of(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class Options final {
 public:
  Options(std::string file, YamlMap map) : file_(std::move(file)), map_(std::move(map)) {}

  StatusOr<MarianOptions> read() const {
    RETURN_IF_ERROR(check_kind());
    MarianOptions options;
    ASSIGN_OR_RETURN(options.is_pre_norm, is_pre_norm());
    ASSIGN_OR_RETURN(options.activation, activation());
    ASSIGN_OR_RETURN(options.encoder_layers, number("enc-depth", kMaxLayers));
    ASSIGN_OR_RETURN(options.decoder_layers, number("dec-depth", kMaxLayers));
    ASSIGN_OR_RETURN(options.heads, number("transformer-heads", kMaxHeads));
    ASSIGN_OR_RETURN(options.decoder_parameters, tied_layers(options.decoder_layers));
    options.has_positions = is_on("transformer-train-position-embeddings") || is_on("transformer-train-positions");
    return options;
  }

 private:
  std::string text(std::string_view key, std::string_view fallback) const {
    const YamlValue* value = find_yaml(map_, key);
    return value == nullptr || value->is_list ? std::string(fallback) : value->text;
  }
  bool is_on(std::string_view key) const {
    const std::string value = text(key, "false");
    return !(value == "false" || value == "0" || value == "~" || value == "null" || value.empty());
  }
  Status unsupported(std::string_view key, std::string_view value, std::string_view what) const {
    return with_param(
        unimplemented(file_, ": ", kMarianOptions, ": ", key, ": ", in_quotes(value), " is not supported; ", what),
        key);
  }

  // What must be so, with what Marian takes an option for that is not there.
  Status check_kind() const {
    const struct {
      std::string_view key, wanted, fallback;
    } rows[] = {{"type", "transformer", ""},
                {"transformer-decoder-autoreg", "self-attention", "self-attention"},
                {"transformer-ffn-depth", "2", "2"},
                {"transformer-decoder-ffn-depth", "0", "0"},
                {"lemma-dim-emb", "0", "0"}};
    for (const auto& [key, wanted, fallback] : rows) {
      const std::string value = text(key, fallback);
      const bool is_decoders_depth = key == "transformer-decoder-ffn-depth" && value == "2";
      if (value == wanted || is_decoders_depth) continue;
      const std::string cell = key == "transformer-decoder-autoreg" && value == "rnn" ? text("dec-cell", "") : "";
      return unsupported(key, value, str_cat(wanted, " is", cell.empty() ? "" : str_cat(" (dec-cell is ", cell, ")")));
    }
    constexpr std::string_view kOff[] = {"transformer-no-projection",  "transformer-pool",
                                         "transformer-no-bias",        "transformer-no-affine",
                                         "transformer-rnn-projection", "ulr"};
    for (const std::string_view key : kOff) {
      if (is_on(key)) return unsupported(key, text(key, ""), "false is");
    }
    const YamlValue* types = find_yaml(map_, "input-types");
    const bool has_types = types != nullptr && std::ranges::any_of(types->list, [](const std::string& type) {
                             return type != "sequence" && type != "alignment" && type != "weight";
                           });
    return has_types ? unsupported("input-types", join(types->list, ", "), "sequences are") : ok_status();
  }

  // A row of operations without dropout, which is of training.
  std::string operations(std::string_view key, std::string_view fallback) const {
    std::string all = text(key, fallback);
    std::erase(all, 'd');
    return all;
  }

  StatusOr<bool> is_pre_norm() const {
    constexpr std::string_view kPre = "transformer-preprocess", kPost = "transformer-postprocess",
                               kTop = "transformer-postprocess-top", kTable = "transformer-postprocess-emb";
    const std::string pre = operations(kPre, ""), post = operations(kPost, "an");
    const std::string top = operations(kTop, ""), table = operations(kTable, "");
    if (!table.empty()) return unsupported(kTable, text(kTable, ""), "d and \"\" are");
    if (pre.empty()) {
      if (post != "an") return unsupported(kPost, text(kPost, ""), "dan is, or da behind a transformer-preprocess n");
      if (!top.empty()) return unsupported(kTop, text(kTop, ""), "\"\" is behind a transformer-postprocess dan");
      return false;
    }
    if (pre != "n") return unsupported(kPre, text(kPre, ""), "n and \"\" are");
    if (post != "a") return unsupported(kPost, text(kPost, "dan"), "da is behind a transformer-preprocess n");
    if (top != "n") return unsupported(kTop, text(kTop, ""), "n is behind a transformer-preprocess n");
    return true;
  }

  StatusOr<std::string> activation() const {
    constexpr std::string_view kKey = "transformer-ffn-activation";
    const std::string name = text(kKey, "swish");
    if (name == "relu" || name == "swish") return name;
    if (name == "gelu") return std::string("quick_gelu");  // Marian's is x sigmoid(1.702 x)
    return unsupported(kKey, name, "relu, swish and gelu are");
  }

  StatusOr<int64_t> number(std::string_view key, int64_t most) const {
    const std::string value = text(key, "");
    const std::optional<int64_t> found = number_of(value);
    if (found.has_value() && *found >= 1 && *found <= most) return *found;
    return with_param(invalid_argument(file_, ": ", kMarianOptions, ": ", key, ": ",
                                       value.empty() ? "is missing" : in_quotes(value), ", expected 1 to ", most),
                      key);
  }

  StatusOr<std::vector<int64_t>> tied_layers(int64_t layers) const {
    constexpr std::string_view kKey = "transformer-tied-layers";
    const YamlValue* tied = find_yaml(map_, kKey);
    std::vector<int64_t> numbers;
    if (tied == nullptr || tied->list.empty()) {
      for (int64_t i = 1; i <= layers; ++i) numbers.push_back(i);
      return numbers;
    }
    for (const std::string& one : tied->list) numbers.push_back(number_of(one).value_or(0));
    const bool are_layers = std::ranges::all_of(numbers, [](int64_t one) { return one >= 1 && one <= kMaxLayers; });
    if (are_layers && std::ssize(numbers) == layers) return numbers;
    return with_param(invalid_argument(file_, ": ", kMarianOptions, ": ", kKey, ": expected a number for each of ",
                                       layers, " layers"),
                      kKey);
  }

  std::string file_;
  YamlMap map_;
};

}  // namespace

StatusOr<MarianOptions> read_marian_options(const NpzFile& file) {
  const NpzFile::Array* array = file.find(kMarianOptions);
  if (array == nullptr) {
    return file.error(kMarianOptions, "is missing: this is no model of Marian, or one of before version 1.0");
  }
  if ((array->dtype != "I8" && array->dtype != "U8") || array->shape.size() != 1) {
    return file.error(kMarianOptions, "is no text");
  }
  std::string_view text(reinterpret_cast<const char*>(array->data.data()), array->data.size());
  text = text.substr(0, text.find('\0'));
  StatusOr<YamlMap> map = parse_yaml_map(text);
  if (!map.ok()) return file.error(kMarianOptions, error_message(map.status()));
  return Options(file.file(), *std::move(map)).read();
}

}  // namespace transept
