#include "server/transcription_form.h"

#include <set>
#include <utility>

#include "base/utf8.h"
#include "net/multipart.h"
#include "request/field_table.h"

namespace transept {
namespace {

constexpr std::string_view kFile = "file";

// Lists are written by repeating their name, objects as a[b] and a[c].
bool may_repeat(const FieldSpec& field, std::string_view full_name) {
  if (field.kind == FieldKind::kWords || field.kind == FieldKind::kStrings) return true;
  const bool is_free =
      field.kind == FieldKind::kIgnored || field.kind == FieldKind::kAny || field.kind == FieldKind::kChunking;
  return is_free && full_name.find('[') != std::string_view::npos;
}

// Takes a form's parts in order.
class PartReader final {
 public:
  explicit PartReader(FieldRoutes route) : route_(route) {}

  Status take(const MultipartPart& part) {
    const std::string_view name = form_field_name(part.name);
    if (name == kFile) return take_file(part);
    const FieldSpec* field = find_field(name, route_);
    if (field == nullptr) {  // ignored whatever it is, and counted
      values_.emplace_back(part.name, "");
      return ok_status();
    }
    if (part.filename.has_value()) return field_error(name, str_cat(name, " must be a value, not a file"));
    if (!seen_.insert(field->name).second && !may_repeat(*field, part.name)) {
      return field_error(name, str_cat(name, " is given twice"));
    }
    if (!is_valid_utf8(part.content)) return field_error(name, str_cat(name, " is not UTF-8"));
    values_.emplace_back(part.name, part.content);
    return ok_status();
  }

  const std::optional<std::string_view>& file() const { return file_; }
  Json fields() const { return form_to_json(values_, route_); }

 private:
  // Its type is often application/octet-stream, and its name says nothing reliable: the content is looked at.
  Status take_file(const MultipartPart& part) {
    if (file_.has_value()) return field_error(kFile, "file is given twice: a request is about one file");
    file_ = part.content;
    return ok_status();
  }

  const FieldRoutes route_;
  std::optional<std::string_view> file_;
  std::vector<std::pair<std::string, std::string>> values_;
  std::set<std::string_view> seen_;  // names of the table
};

// A form with too much in it is the client's fault, and never better later.
Status as_bad_form(const Status& error) {
  Status bad = invalid_argument(error_message(error));
  const std::string param = error_param(error);
  return param.empty() ? bad : with_param(std::move(bad), form_field_name(param));
}

Status check_file(const std::optional<std::string_view>& file, size_t max_bytes) {
  if (!file.has_value()) return field_error(kFile, "file is missing");
  if (file->empty()) return field_error(kFile, "file is empty");
  if (file->size() <= max_bytes) return ok_status();
  return with_param(resource_exhausted("file has ", file->size(), " bytes, more than the ", max_bytes, " allowed"),
                    kFile);
}

}  // namespace

StatusOr<TranscriptionForm> read_transcription_form(const HttpRequest& head, std::string body, FieldRoutes route,
                                                    const ServerOptions& options) {
  const std::string* content_type = head.header("Content-Type");
  if (content_type == nullptr) return invalid_argument("Content-Type must be multipart/form-data; there is none");
  ASSIGN_OR_RETURN(const std::string boundary, multipart_boundary(*content_type));
  const auto owner = std::make_shared<const std::string>(std::move(body));
  MultipartLimits limits;
  limits.max_field_bytes = options.max_field_bytes;
  const StatusOr<std::vector<MultipartPart>> parts = parse_multipart(*owner, boundary, limits);
  if (!parts.ok()) return as_bad_form(parts.status());
  PartReader reader(route);
  for (const MultipartPart& part : *parts) RETURN_IF_ERROR(reader.take(part));
  RETURN_IF_ERROR(check_file(reader.file(), options.max_upload_bytes));

  TranscriptionForm form;
  form.fields = reader.fields();
  ASSIGN_OR_RETURN(form.request, parse_body(form.fields, route, options.limits));
  const auto* bytes = reinterpret_cast<const uint8_t*>(reader.file()->data());
  form.audio = {owner, std::span(bytes, reader.file()->size())};
  return form;
}

}  // namespace transept
