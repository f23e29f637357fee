#include "startup/shortlist_file.h"

#include <algorithm>
#include <filesystem>

#include "models/registry.h"

namespace transept {
namespace {

bool is_marian(const ModelConfig& model) {
  const std::optional<FamilyTraits> family = family_of(model);
  return family.has_value() && family->model_type == "marian";
}

// By name, in their order.
std::vector<std::string> shortlists_in(const std::string& dir) {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(dir, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("lex") && name.ends_with(".s2t.bin")) found.push_back(str_cat(dir, "/", name));
  }
  std::sort(found.begin(), found.end());
  return found;
}

// "": there is none.
StatusOr<std::string> choose_file(const std::string& asked, const ModelConfig& model) {
  if (asked == "none") return std::string();
  if (asked.empty()) return invalid_argument("--shortlist: a file's name, auto or none is expected, and it is empty");
  if (asked != "auto") {
    if (is_marian(model)) return asked;
    return invalid_argument("--shortlist ", asked, ": only Marian models take shortlists, and ", model.path, " is ",
                            model.model_type.empty() ? "another family" : model.model_type);
  }
  if (!is_marian(model)) return std::string();
  const std::vector<std::string> found = shortlists_in(model.path);
  if (found.size() > 1) {
    return invalid_argument("several shortlists: ", join(found, ", "),
                            ": name the one to use with --shortlist FILE, or give --shortlist none");
  }
  return found.empty() ? std::string() : found.front();
}

bool has_one_vocabulary(const ModelConfig& model) {
  const Json* shared = model.raw.find("share_encoder_decoder_embeddings");
  const bool is_shared = shared == nullptr || !shared->is_bool() || shared->as_bool();
  return is_shared && model.vocab_size == model.decoder_vocab_size;
}

}  // namespace

StatusOr<ShortlistOptions> read_shortlist(const std::string& asked, const ModelConfig& model,
                                          const GenerationConfig& generation) {
  ShortlistOptions options;
  ASSIGN_OR_RETURN(options.path, choose_file(asked, model));
  if (options.path.empty()) return options;
  ASSIGN_OR_RETURN(Shortlist list, Shortlist::open(options.path, {.source = model.vocab_size,
                                                                  .target = model.decoder_vocab_size,
                                                                  .is_shared = has_one_vocabulary(model)}));
  options.list = std::make_shared<const Shortlist>(std::move(list));
  for (const std::vector<int32_t>* ids :
       {&model.eos_token_ids, &generation.eos_token_ids, &generation.forced_eos_token_ids}) {
    options.always.insert(options.always.end(), ids->begin(), ids->end());
  }
  if (generation.forced_bos_token_id.has_value()) options.always.push_back(*generation.forced_bos_token_id);
  return options;
}

}  // namespace transept
