// Models, texts and ids, cancellations and the log of transept.h.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "capi/border.h"
#include "capi/callback_scope.h"
#include "capi/handles.h"
#include "capi/log_callback.h"
#include "capi/model_json.h"
#include "capi/model_options.h"
#include "capi/new_request.h"
#include "capi/option_table.h"
#include "startup/engine_ranges.h"

namespace transept {
namespace {

constexpr size_t kModelOptionsV1 = offsetof(transept_model_options, on_download);
constexpr size_t kTokenizeOptionsV1 = sizeof(transept_tokenize_options);
constexpr uint32_t kTokenizeFlags = TRANSEPT_TOKENIZE_DECODER_SIDE | TRANSEPT_TOKENIZE_NO_SPECIAL_TOKENS;

struct LoadOptions {
  ModelOptions config;
  AsyncEngine::Options engine;
  OnDownload on_download;
};

StatusOr<LoadOptions> load_options(const transept_model_options* given) {
  transept_model_options options{};
  if (given != nullptr) {
    ASSIGN_OR_RETURN(options, read_struct(given, kModelOptionsV1, "options"));
  }
  ASSIGN_OR_RETURN(const std::string_view json, read_text(options.options_json, "options_json"));
  ASSIGN_OR_RETURN(const Json object, parse_options(json, "options_json"));
  LoadOptions load;
  ASSIGN_OR_RETURN(load.config, model_options_of(object));
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return field_error("threads",
                       str_cat("threads must be a whole number from 0 to ", kMaxThreads, ", not ", options.threads));
  }
  if (options.threads > 0) load.config.threads = options.threads;
  if (options.max_queued_requests < 0) {
    return field_error("max_queued_requests", str_cat("max_queued_requests is ", options.max_queued_requests));
  }
  if (options.on_download != nullptr) {
    load.on_download = [call = options.on_download, data = options.data](const std::string& name, int64_t done,
                                                                         int64_t total) {
      call(data, name.c_str(), done, total);
    };
  }
  if (options.max_queued_requests > 0) load.engine.max_queued_requests = options.max_queued_requests;
  return load;
}

StatusOr<const Tokenizer*> tokenizer_of(const SharedModel& model) {
  if (model.tokenizer() != nullptr) return model.tokenizer().get();
  return absl::FailedPreconditionError(str_cat(model.model().config.model, ": the folder has no tokenizer"));
}

struct TokenizeOptions {
  std::string source_lang, target_lang;
  EncodeOptions encode;  // its languages are unset
};

StatusOr<TokenizeOptions> tokenize_options(const transept_tokenize_options* given) {
  TokenizeOptions options;
  if (given == nullptr) return options;
  ASSIGN_OR_RETURN(const auto known, read_struct(given, kTokenizeOptionsV1, "options"));
  if ((known.flags & ~kTokenizeFlags) != 0) {
    return field_error("flags", "options.flags has bits that are no TRANSEPT_TOKENIZE_ constant");
  }
  ASSIGN_OR_RETURN(options.source_lang, read_text(known.source_lang, "source_lang"));
  ASSIGN_OR_RETURN(options.target_lang, read_text(known.target_lang, "target_lang"));
  options.encode.add_special_tokens = (known.flags & TRANSEPT_TOKENIZE_NO_SPECIAL_TOKENS) == 0;
  if ((known.flags & TRANSEPT_TOKENIZE_DECODER_SIDE) != 0) options.encode.side = TokenizerSide::kDecoder;
  return options;
}

// The model's vocabulary may be larger than the tokenizer's: such ids are legal, and have no text.
int64_t id_limit(const SharedModel& model, const Tokenizer& tokenizer) {
  const LoadedModel& loaded = model.model();
  return std::max<int64_t>({loaded.model_config.vocab_size, loaded.info.spec.vocab_size, tokenizer.vocab_size()});
}

Status check_ids(std::span<const int32_t> ids, int64_t vocab_size) {
  const auto bad = std::ranges::find_if(ids, [&](int32_t id) { return id < 0 || id >= vocab_size; });
  if (bad == ids.end()) return ok_status();
  return field_error("ids",
                     str_cat("ids[", bad - ids.begin(), "]: ", *bad, " is outside the vocabulary of ", vocab_size));
}

template <typename MakeJson>
transept_code give_json(const transept_model* model, char** json, transept_error** error, MakeJson make_json) {
  if (json != nullptr) *json = nullptr;
  return at_border(error, [&]() -> Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<SharedModel> shared, model_of(model));
    RETURN_IF_ERROR(require(json, "json"));
    const SharedModel::Call call(shared);
    *json = copy_text(make_json(*shared).dump());
    return ok_status();
  });
}

}  // namespace
}  // namespace transept

using namespace transept;  // NOLINT: the functions below are C's

transept_code transept_model_load(const char* name, const transept_model_options* options, transept_model** model,
                                  transept_error** error) {
  if (model != nullptr) *model = nullptr;
  return at_border(error, [&]() -> Status {
    RETURN_IF_ERROR(require(name, "name"));
    RETURN_IF_ERROR(require(model, "model"));
    use_quiet_log();
    ASSIGN_OR_RETURN(LoadOptions load, load_options(options));
    ASSIGN_OR_RETURN(load.config.model, model_folder_of(name, load.config, load.on_download));
    auto handle = std::make_unique<transept_model>();
    StatusOr<std::shared_ptr<SharedModel>> shared = SharedModel::load(load.config, load.engine);
    if (!shared.ok()) return in_words_of_options(shared.status());
    handle->shared = std::move(shared).value();
    *model = handle.release();
    return ok_status();
  });
}

transept_code transept_model_drain(transept_model* model, double timeout_seconds, transept_error** error) {
  return at_border(error, [&]() -> Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<SharedModel> shared, model_of(model));
    RETURN_IF_ERROR(CallbackScope::check_may_wait());
    ASSIGN_OR_RETURN(const Duration timeout, read_seconds(timeout_seconds, "timeout_seconds"));
    const SharedModel::Call call(shared);
    return shared->engine().drain(timeout);
  });
}

transept_code transept_model_stop(transept_model* model, transept_error** error) {
  return at_border(error, [&]() -> Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<SharedModel> shared, model_of(model));
    RETURN_IF_ERROR(CallbackScope::check_may_wait());
    const SharedModel::Call call(shared);
    shared->stop();
    return ok_status();
  });
}

transept_code transept_model_free(transept_model* model, transept_error** error) {
  return at_border(error, [&]() -> Status {
    if (model == nullptr || model->shared->is_forked()) return ok_status();
    RETURN_IF_ERROR(CallbackScope::check_may_free());
    model->shared->let_go();
    delete model;
    return ok_status();
  });
}

transept_code transept_model_info(const transept_model* model, char** json, transept_error** error) {
  return give_json(model, json, error, [](const SharedModel& shared) { return model_info_json(shared); });
}

transept_code transept_model_stats(const transept_model* model, char** json, transept_error** error) {
  return give_json(model, json, error,
                   [](const SharedModel& shared) { return model_stats_json(shared.engine().snapshot()); });
}

transept_code transept_tokenize(const transept_model* model, transept_text text,
                                const transept_tokenize_options* options, int32_t** ids, size_t* num_ids,
                                transept_error** error) {
  if (ids != nullptr) *ids = nullptr;
  if (num_ids != nullptr) *num_ids = 0;
  return at_border(error, [&]() -> Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<SharedModel> shared, model_of(model));
    RETURN_IF_ERROR(require(ids, "ids"));
    RETURN_IF_ERROR(require(num_ids, "num_ids"));
    RETURN_IF_ERROR(require(text.data, "text"));
    ASSIGN_OR_RETURN(const std::string_view given, read_text(text, "text"));
    ASSIGN_OR_RETURN(const TokenizeOptions read, tokenize_options(options));
    ASSIGN_OR_RETURN(const Tokenizer* tokenizer, tokenizer_of(*shared));
    EncodeOptions encode = read.encode;
    encode.source_lang = read.source_lang;
    encode.target_lang = read.target_lang;
    const SharedModel::Call call(shared);
    ASSIGN_OR_RETURN(const std::vector<int32_t> encoded, tokenizer->encode(given, encode));
    *ids = copy_ids(encoded);
    *num_ids = encoded.size();
    return ok_status();
  });
}

transept_code transept_detokenize(const transept_model* model, const int32_t* ids, size_t num_ids,
                                  int32_t skip_special_tokens, char** text, size_t* size, transept_error** error) {
  if (text != nullptr) *text = nullptr;
  if (size != nullptr) *size = 0;
  return at_border(error, [&]() -> Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<SharedModel> shared, model_of(model));
    RETURN_IF_ERROR(require(text, "text"));
    ASSIGN_OR_RETURN(const std::span<const int32_t> given, read_array(ids, num_ids, "ids"));
    ASSIGN_OR_RETURN(const Tokenizer* tokenizer, tokenizer_of(*shared));
    RETURN_IF_ERROR(check_ids(given, id_limit(*shared, *tokenizer)));
    const SharedModel::Call call(shared);
    const std::string decoded = tokenizer->decode(given, skip_special_tokens != 0);
    *text = copy_text(decoded);
    if (size != nullptr) *size = decoded.size();
    return ok_status();
  });
}

transept_code transept_token_spelling(const transept_model* model, int32_t id, uint32_t flags, char** text,
                                      size_t* size, transept_error** error) {
  if (text != nullptr) *text = nullptr;
  if (size != nullptr) *size = 0;
  return at_border(error, [&]() -> Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<SharedModel> shared, model_of(model));
    RETURN_IF_ERROR(require(text, "text"));
    if ((flags & ~uint32_t{TRANSEPT_TOKENIZE_DECODER_SIDE}) != 0) {
      return field_error("flags", "flags has bits other than TRANSEPT_TOKENIZE_DECODER_SIDE");
    }
    ASSIGN_OR_RETURN(const Tokenizer* tokenizer, tokenizer_of(*shared));
    RETURN_IF_ERROR(check_ids({&id, 1}, id_limit(*shared, *tokenizer)));
    const SharedModel::Call call(shared);
    const TokenizerSide side = flags == 0 ? TokenizerSide::kEncoder : TokenizerSide::kDecoder;
    const std::string spelling = tokenizer->side_token_to_string(id, side);
    *text = copy_text(spelling);
    if (size != nullptr) *size = spelling.size();
    return ok_status();
  });
}

transept_code transept_cancellation_create(transept_cancellation** cancellation, transept_error** error) {
  if (cancellation != nullptr) *cancellation = nullptr;
  return at_border(error, [&]() -> Status {
    RETURN_IF_ERROR(require(cancellation, "cancellation"));
    *cancellation = new transept_cancellation{::getpid(), std::stop_source()};
    return ok_status();
  });
}

transept_code transept_cancellation_cancel(transept_cancellation* cancellation, transept_error** error) {
  return at_border(error, [&]() -> Status {
    RETURN_IF_ERROR(require(cancellation, "cancellation"));
    if (cancellation->process != ::getpid()) return forked_error("the cancellation belongs to the parent process");
    cancellation->source.request_stop();
    return ok_status();
  });
}

void transept_cancellation_free(transept_cancellation* cancellation) {
  if (cancellation != nullptr && cancellation->process == ::getpid()) delete cancellation;
}

transept_code transept_log_set(int32_t level, transept_log_fn log, void* data, transept_error** error) {
  return at_border(error, [&] { return set_log_callback(level, log, data); });
}
