// `transept dump features|encoder MODEL INPUT --output F.npy`: what the encoder is given, and what it gives, for
// comparing with a reference.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "apps/engine_flags.h"
#include "apps/transcript_files.h"
#include "apps/verbs.h"
#include "base/input_file.h"
#include "base/log.h"
#include "request/field_reader.h"
#include "startup/load_engine.h"
#include "startup/model_files.h"
#include "startup/recognise_model.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

// NumPy's format 1.0: a float32 array in C order. A file is written whole or not at all: half an array would be read as
// one by somebody. A pipe or a device gets it as it comes.
Status write_npy(const std::string& flag, const std::string& path, std::span<const int64_t> shape,
                 const std::vector<float>& values) {
  std::string dims;
  for (const int64_t dim : shape) dims += str_cat(dims.empty() ? "" : ", ", dim);
  if (shape.size() == 1) dims += ",";  // a tuple of one
  std::string header = str_cat("{'descr': '<f4', 'fortran_order': False, 'shape': (", dims, "), }");
  constexpr size_t kPreamble = 10, kAlignment = 64;
  const size_t padding = kAlignment - (kPreamble + header.size() + 1) % kAlignment;
  header += std::string(padding, ' ') + '\n';
  std::string preamble("\x93NUMPY\x01\x00", 8);
  preamble += static_cast<char>(header.size() & 0xFF);
  preamble += static_cast<char>(header.size() >> 8);
  std::error_code error;
  if (path != "-" && (fs::is_regular_file(path, error) || !fs::exists(path, error))) {
    const auto bytes = std::as_bytes(std::span(values));
    return write_file(
        path, str_cat(preamble, header, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
  }
  std::FILE* file = std::fopen(path == "-" ? "/dev/stdout" : path.c_str(), "wb");
  if (file == nullptr) return invalid_argument(flag, ": ", path, ": ", std::strerror(errno));
  bool written = std::fwrite(preamble.data(), 1, preamble.size(), file) == preamble.size();
  written &= std::fwrite(header.data(), 1, header.size(), file) == header.size();
  written &= std::fwrite(values.data(), sizeof(float), values.size(), file) == values.size();
  written &= std::fclose(file) == 0;
  if (written) return ok_status();
  return absl::DataLossError(str_cat(path, ": not everything could be written"));
}

// A file of the one modality that a model's encoder takes.
Json media_of(const MultiModalRegistry& media, const std::string& path) {
  Json data = Json::object();
  data.set(modality_name(media.audio() != nullptr ? Modality::kAudio : Modality::kImage), path);
  return data;
}

// The input of `dump encoder`: the path of media where the model takes some; a .json file with a list of ids, else a
// text.
StatusOr<EncoderDecoderPrompt> read_input(const std::string& argument, const std::optional<std::string>& question,
                                          const MultiModalRegistry& media) {
  EncoderDecoderPrompt prompt;
  if (question.has_value() && !media.draws_question()) {
    return invalid_argument("--prompt: this model draws no question above an image");
  }
  if (media.audio() != nullptr || media.image() != nullptr) {
    prompt.encoder.multi_modal_data = media_of(media, argument);
    if (question.has_value()) prompt.encoder.content = TextPrompt{*question};
    return prompt;
  }
  if (!argument.ends_with(".json")) {
    prompt.encoder.content = TextPrompt{argument};
    return prompt;
  }
  ASSIGN_OR_RETURN(const std::string text, read_file(argument));
  StatusOr<Json> json = Json::parse(text);
  if (!json.ok()) return with_prefix(json.status(), argument);
  if (!json->is_array()) return invalid_argument(argument, ": expected a list of token ids");
  TokensPrompt tokens;
  for (const Json& id : json->as_array()) {
    if (!id.is_int() || id.as_int() < 0 || id.as_int() > INT32_MAX) {
      return invalid_argument(argument, ": [", tokens.token_ids.size(), "]: ", id.dump(), " is not a token id (",
                              kTokenIdRange, ")");
    }
    tokens.token_ids.push_back(static_cast<int32_t>(id.as_int()));
  }
  if (tokens.token_ids.empty()) return invalid_argument(argument, ": the list is empty");
  prompt.encoder.content = std::move(tokens);
  return prompt;
}

// One array has one shape.
Status refuse_forms(const std::string& input) {
  return unimplemented(input, ": this model reads a picture in several forms, of unequal sizes: dump writes one array");
}

// By a request that wants one token: what is dumped is what requests get.
StatusOr<std::vector<float>> encode(const LoadedModel& model, EncoderDecoderInputs inputs) {
  // What is spliced needs places in a prompt.
  const auto num_places = static_cast<size_t>(std::max(1, inputs.num_encoder_tokens()));
  inputs.prompt_token_ids.assign(model.info.spec.splices_alone() ? num_places : 1,
                                 model.prompts->decoder_start_token_id());
  SamplingParams params;
  params.max_tokens = 1;
  params.capture_encoder_output = true;
  RETURN_IF_ERROR(model.engine->add_request("dump", std::move(inputs), params));
  std::vector<RequestOutput> outputs;
  while (outputs.empty()) RETURN_IF_ERROR(model.engine->step(outputs));
  return std::move(outputs.front().encoder_output);
}

Status dump_encoder(const Flags& flags, const std::string& input, const std::string& path) {
  ASSIGN_OR_RETURN(EngineConfig config, engine_config(flags));
  const SteadyClock clock;
  ASSIGN_OR_RETURN(const LoadedModel model, load_engine(config, clock));
  ASSIGN_OR_RETURN(const EncoderDecoderPrompt prompt, read_input(input, flags.text("prompt"), *model.media));
  PromptProcessor::Options options;
  options.media.local_paths = true;
  options.first_window_alone = true;
  ASSIGN_OR_RETURN(EncoderDecoderInputs inputs, model.prompts->process_encoder(prompt, options));
  if (inputs.items.size() > 1) return refuse_forms(input);
  // Of media that stand among ids: the rows that take their places.
  for (EncoderItem& item : inputs.items) {
    if (item.features != nullptr) item.token_ids.clear();
  }
  // Of padding that stands last, no rows: it is the tower's own.
  const int64_t num_rows = inputs.num_encoder_tokens() - inputs.items.front().num_last_positions();
  const int64_t shape[] = {num_rows, model.info.spec.width_of(Consumers::kCross)};
  ASSIGN_OR_RETURN(std::vector<float> hidden, encode(model, std::move(inputs)));
  hidden.resize(std::min(hidden.size(), static_cast<size_t>(shape[0] * shape[1])));
  return write_npy(flags.name_of("output"), path, shape, hidden);
}

// Needs no weights, no tokenizer and no model: the family's media alone.
Status dump_features(const Flags& flags, const std::string& path) {
  const std::string &model_dir = flags.positional()[1], &input = flags.positional()[2];
  const StatusOr<ModelFiles> files = ModelFiles::open(model_dir);
  const StatusOr<ModelConfig> config = files.ok() ? ModelConfig::load(files->folder()) : files.status();
  if (!config.ok()) return explain_model_error(config.status(), model_dir);
  ASSIGN_OR_RETURN(std::shared_ptr<const HeaderFont> font, load_header_font(flags.text_or("header-font", "")));
  ASSIGN_OR_RETURN(const std::unique_ptr<MultiModalRegistry> media,
                   MultiModalRegistry::create(*config, detect_isa(), std::move(font)));
  if (media->audio() == nullptr && media->image() == nullptr) {
    return invalid_argument(model_dir, ": dump features: a ", config->model_type, " model encodes ids, not media");
  }
  const MediaAccess access{.local_paths = true};
  const MediaLimits limits{.first_window_alone = true};
  const std::optional<std::string> question = flags.text("prompt");
  if (question.has_value() && !media->draws_question()) {
    return invalid_argument("--prompt: this model draws no question above an image");
  }
  ASSIGN_OR_RETURN(const MultiModalRegistry::Items items,
                   media->process(media_of(*media, input), access, limits, question));
  if (items.size() > 1) return refuse_forms(input);
  return write_npy(flags.name_of("output"), path, items.front()->shape, items.front()->values);
}

}  // namespace

int run_dump(const Flags& flags) {
  const std::vector<std::string>& arguments = flags.positional();
  if (arguments.size() != 3 || (arguments[0] != "encoder" && arguments[0] != "features")) {
    return usage_error("dump", invalid_argument("expected: transept dump features MODEL AUDIO|IMAGE, or transept dump "
                                                "encoder MODEL AUDIO|IMAGE|TEXT|ids.json, "
                                                "with --output FILE.npy"));
  }
  const auto path = flags.text("output");
  if (!path.has_value()) return usage_error("dump", invalid_argument("--output FILE.npy is missing"));
  const Status status = arguments[0] == "features"
                            ? dump_features(flags, *path)
                            : dump_encoder(flags.without_first_positional(), arguments[2], *path);
  return status.ok() ? kExitOk : usage_error("dump", status);
}

}  // namespace transept
