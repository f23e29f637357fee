#include "foreign/ct2_model.h"

#include <filesystem>
#include <utility>

#include "base/quoted.h"
#include "core/config_file.h"
#include "foreign/ct2_file.h"
#include "foreign/ct2_transformer.h"
#include "foreign/ct2_whisper.h"

namespace transept {
namespace {

constexpr std::string_view kTransformer = "TransformerSpec", kWhisper = "WhisperSpec";

Status check_quantization(const ModelFolder& folder, const Json& config) {
  const Json* type = config.find("quantization_type");
  if (type == nullptr || type->is_null() || (type->is_int() && type->as_int() == 0)) return ok_status();
  return with_param(unimplemented(folder.name_of("config.json"), ": quantization_type: ", type->dump(),
                                  " (AWQ inside a CTranslate2 model) is not supported; give the AWQ checkpoint itself"),
                    "quantization_type");
}

}  // namespace

bool is_ct2_spec(std::string_view spec) { return spec == kTransformer || spec == kWhisper; }

StatusOr<ForeignModel> open_ct2_model(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<MmapFile> file, MmapFile::open(path));
  ASSIGN_OR_RETURN(const Ct2File model, Ct2File::parse(file->bytes(), path));
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const ModelFolder folder(parent.empty() ? "." : parent);
  Json config = Json::object();  // before version 5 there was none
  if (folder.has("config.json")) {
    ASSIGN_OR_RETURN(config, read_json_object(folder, "config.json"));
  }
  RETURN_IF_ERROR(check_quantization(folder, config));
  if (model.spec() == kWhisper) return open_ct2_whisper(model, folder, config, std::move(file));
  if (model.spec() == kTransformer) return open_ct2_transformer(model, folder, config, std::move(file));
  return unimplemented(path, ": ", in_quotes(model.spec()), " of CTranslate2 is not supported; ", kTransformer, " and ",
                       kWhisper, " are");
}

}  // namespace transept
