// A template and its input from the fuzzer: up to the first NUL the template, behind it the variables in JSON,
// "messages" among them. Whatever they hold, parsing and rendering answer with a status, within the bounds, the same
// each time.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "base/utf8.h"
#include "text/chat/chat_template.h"

namespace {

using transept::ChatTemplate;
using transept::Json;
using transept::StatusOr;

void require(bool condition) {
  if (!condition) std::abort();
}

void use(const ChatTemplate& parsed, const Json& variables) {
  const Json* const given = variables.find("messages");
  const Json messages = given == nullptr ? Json::array() : *given;
  const ChatTemplate::Input input{.messages = messages, .variables = variables, .now = {}};
  const StatusOr<std::string> text = parsed.render(input);
  const StatusOr<std::string> again = parsed.render(input);
  require(text.status() == again.status());
  if (!text.ok()) return;
  require(*text == *again && text->size() <= ChatTemplate::kMaxOutputBytes);
  require(transept::is_valid_utf8(*text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), input.size());
  const StatusOr<ChatTemplate> parsed = ChatTemplate::parse(input.substr(0, end));
  if (!parsed.ok()) return 0;
  StatusOr<Json> variables = end == input.size() ? Json::object() : Json::parse(input.substr(end + 1));
  if (!variables.ok() || !variables->is_object()) variables = Json::object();
  use(*parsed, *variables);
  return 0;
}
