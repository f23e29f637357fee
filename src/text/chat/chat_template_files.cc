#include "text/chat/chat_template_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/input_file.h"
#include "text/chat/chat_template.h"
#include "text/json_field.h"

namespace transept {
namespace {

constexpr std::string_view kSuffix = ".jinja";
constexpr std::string_view kMoreTemplates = "additional_chat_templates";

using Entry = ChatTemplateFiles::Entry;

bool exists(const std::string& dir, std::string_view file) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::path(dir) / file, ignored);
}

StatusOr<std::string> read_template(const std::string& dir, const std::string& file) {
  return read_file((std::filesystem::path(dir) / file).string(), ChatTemplate::kMaxSourceBytes);
}

// A file that is not there is null.
StatusOr<Json> read_json(const std::string& dir, std::string_view file) {
  if (!exists(dir, file)) return Json();
  ASSIGN_OR_RETURN(const std::string text, read_file((std::filesystem::path(dir) / file).string()));
  ASSIGN_OR_RETURN(Json json, parse_json_file(file, text));
  RETURN_IF_ERROR(JsonField(file, json).expect_object());
  return json;
}

// "chat_template" of a file: a string, or a list of {name, template}.
StatusOr<std::vector<Entry>> read_member(std::string_view file, const Json& json) {
  const JsonField field = JsonField(file, json).member("chat_template");
  std::vector<Entry> entries;
  if (!field.present()) return entries;
  if (!field.json().is_array()) {
    ASSIGN_OR_RETURN(std::string source, field.as_string());
    entries.push_back({.name = "default", .source = std::move(source), .file = std::string(file)});
    return entries;
  }
  for (size_t i = 0; i < field.json().as_array().size(); ++i) {
    const JsonField item = field.item(i);
    RETURN_IF_ERROR(item.expect_object());
    ASSIGN_OR_RETURN(std::string name, item.member_as_string("name"));
    ASSIGN_OR_RETURN(std::string source, item.member_as_string("template"));
    std::erase_if(entries, [&](const Entry& entry) { return entry.name == name; });  // the last of a name counts
    entries.push_back({.name = std::move(name), .source = std::move(source), .file = std::string(file)});
  }
  return entries;
}

std::vector<std::string> more_templates(const std::string& dir) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator files(std::filesystem::path(dir) / kMoreTemplates, error);
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) {
    std::string name = files->path().filename().string();
    if (name.ends_with(kSuffix) && !name.starts_with('.')) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

StatusOr<std::vector<Entry>> read_jinja_files(const std::string& dir) {
  std::vector<Entry> entries;
  constexpr std::string_view kFile = "chat_template.jinja";
  if (exists(dir, kFile)) {
    ASSIGN_OR_RETURN(std::string source, read_template(dir, std::string(kFile)));
    entries.push_back({.name = "default", .source = std::move(source), .file = std::string(kFile)});
  }
  for (const std::string& file : more_templates(dir)) {
    const std::string path = str_cat(kMoreTemplates, "/", file);
    std::string name = file.substr(0, file.size() - kSuffix.size());
    ASSIGN_OR_RETURN(std::string source, read_template(dir, path));
    std::erase_if(entries, [&](const Entry& entry) { return entry.name == name; });
    entries.push_back({.name = std::move(name), .source = std::move(source), .file = path});
  }
  return entries;
}

// Null: the processor has none of its own.
StatusOr<std::vector<Entry>> read_processor_files(const std::string& dir) {
  ASSIGN_OR_RETURN(const Json config, read_json(dir, "processor_config.json"));
  ASSIGN_OR_RETURN(std::vector<Entry> entries, read_member("processor_config.json", config));
  if (!entries.empty() || !exists(dir, "chat_template.json")) return entries;
  if (!more_templates(dir).empty()) {
    return invalid_argument("chat_template.json: must not stand beside ", kMoreTemplates,
                            "; make it chat_template.jinja");
  }
  ASSIGN_OR_RETURN(const Json legacy, read_json(dir, "chat_template.json"));
  return read_member("chat_template.json", legacy);
}

// The content of a special token: a string, or {"content": ..}.
std::optional<std::string> token_content(const Json& token) {
  const Json* const content = token.is_object() ? token.find("content") : &token;
  if (content == nullptr || !content->is_string()) return std::nullopt;
  return content->as_string();
}

void add_tokens(const Json& object, std::string_view suffix, Json& out) {
  if (!object.is_object()) return;
  for (const auto& [name, token] : object.as_object()) {
    if (!name.ends_with(suffix)) continue;
    if (std::optional<std::string> content = token_content(token); content.has_value())
      out.set(name, std::move(*content));
  }
}

Status read_special_tokens(const std::string& dir, const Json& config, Json& out) {
  const auto add_file = [&out](const Json& file) {
    add_tokens(file, "_token", out);
    if (const Json* const more = file.find("extra_special_tokens"); more != nullptr) add_tokens(*more, "", out);
  };
  add_file(config);
  if (config.find("added_tokens_decoder") != nullptr) return ok_status();
  ASSIGN_OR_RETURN(const Json legacy, read_json(dir, "special_tokens_map.json"));
  add_file(legacy);
  return ok_status();
}

}  // namespace

const ChatTemplateFiles::Entry* ChatTemplateFiles::choose(bool has_tools) const {
  const auto named = [this](std::string_view name) -> const Entry* {
    const auto found = std::find_if(templates.begin(), templates.end(), [&](const Entry& e) { return e.name == name; });
    return found == templates.end() ? nullptr : &*found;
  };
  if (has_tools && owner == ChatTemplateOwner::kTokenizer) {
    if (const Entry* const entry = named("tool_use"); entry != nullptr) return entry;
  }
  return named("default");
}

StatusOr<ChatTemplateFiles> load_chat_template_files(const std::string& dir, ChatTemplateOwner owner) {
  ChatTemplateFiles files{.owner = owner};
  if (owner == ChatTemplateOwner::kProcessor) {
    ASSIGN_OR_RETURN(files.templates, read_processor_files(dir));
  }
  if (files.templates.empty()) {
    ASSIGN_OR_RETURN(files.templates, read_jinja_files(dir));
  }
  ASSIGN_OR_RETURN(const Json config, read_json(dir, "tokenizer_config.json"));
  if (files.templates.empty()) {
    ASSIGN_OR_RETURN(files.templates, read_member("tokenizer_config.json", config));
    files.owner = ChatTemplateOwner::kTokenizer;
  }
  RETURN_IF_ERROR(read_special_tokens(dir, config, files.special_tokens));
  return files;
}

}  // namespace transept
