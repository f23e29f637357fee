#include "text/chat/chat_template.h"

#include <utility>

#include "text/chat/ast.h"
#include "text/chat/evaluator.h"
#include "text/chat/parser.h"
#include "text/chat/scopes.h"
#include "text/chat/value_ops.h"

namespace transept {
namespace {

using jinja::Heap;
using jinja::Value;

void set_member(Heap& heap, jinja::Dict& dict, std::string_view name, const Value& value) {
  if (const Value* const found = find_key(dict, name); found != nullptr) {
    *const_cast<Value*>(found) = value;
  } else {
    dict.items.emplace_back(heap.borrowed_text(name), value);
  }
}

// A message without members that are null, and with its reasoning under the names that templates read
// (_alias_reasoning_fields of transformers).
StatusOr<Value> prepare_message(Heap& heap, const Json& message) {
  ASSIGN_OR_RETURN(const Value all, from_json(heap, message));
  Value reasoning;
  const Value made = heap.dict({});
  for (const auto& [name, value] : all.dict->items) {
    if (!value.is(jinja::Kind::kNone)) made.dict->items.emplace_back(name, value);
  }
  for (const std::string_view name : {"reasoning_content", "thinking", "reasoning"}) {
    const Value* const found = find_key(*made.dict, name);
    if (found != nullptr && reasoning.missing()) reasoning = *found;
  }
  if (reasoning.missing()) return made;
  if (find_key(*made.dict, "thinking") != nullptr) {  // it comes first
    auto& items = made.dict->items;
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].first.text->view != "thinking") continue;
      const std::pair<Value, Value> thinking = items[i];
      items.erase(items.begin() + static_cast<ptrdiff_t>(i));
      items.insert(items.begin(), thinking);
      break;
    }
  } else {
    made.dict->items.insert(made.dict->items.begin(), {heap.borrowed_text("thinking"), reasoning});
  }
  set_member(heap, *made.dict, "reasoning_content", reasoning);
  return made;
}

StatusOr<Value> prepare_messages(Heap& heap, const Json& messages) {
  if (!messages.is_array()) return field_error("messages", str_cat("expected a list, found ", messages.kind_name()));
  std::vector<Value> prepared;
  for (size_t i = 0; i < messages.as_array().size(); ++i) {
    const Json& message = messages.as_array()[i];
    const std::string place = str_cat("messages[", i, "]");
    if (!message.is_object()) return field_error(place, str_cat("expected an object, found ", message.kind_name()));
    ASSIGN_OR_RETURN(prepared.emplace_back(), prepare_message(heap, message));
  }
  return heap.list(std::move(prepared));
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<const jinja::Program> program) : program_(std::move(program)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

StatusOr<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  if (source.size() > kMaxSourceBytes)
    return invalid_argument("the template has more than ", kMaxSourceBytes, " bytes");
  auto program = std::make_unique<jinja::Program>();
  RETURN_IF_ERROR(jinja::parse_program(source, *program));
  RETURN_IF_ERROR(jinja::resolve_names(*program));
  return ChatTemplate(std::move(program));
}

const std::vector<std::string>& ChatTemplate::unsupported() const { return program_->unsupported; }

StatusOr<std::string> ChatTemplate::render(const Input& input) const {
  if (!input.variables.is_object()) return invalid_argument("the variables of a chat template must be an object");
  Heap heap(jinja::kMaxSteps);
  ASSIGN_OR_RETURN(const Value messages, prepare_messages(heap, input.messages));
  ASSIGN_OR_RETURN(const Value variables, from_json(heap, input.variables));
  jinja::Dict& inputs = *variables.dict;
  for (const std::string_view name : {"tools", "documents"}) {
    if (find_key(inputs, name) == nullptr) set_member(heap, inputs, name, jinja::none());
  }
  if (find_key(inputs, "add_generation_prompt") == nullptr) {
    set_member(heap, inputs, "add_generation_prompt", jinja::boolean(false));
  }
  set_member(heap, inputs, "messages", messages);
  const jinja::Run run{.inputs = &inputs, .now = input.now, .max_output_bytes = kMaxOutputBytes};
  return jinja::evaluate(heap, *program_, run);
}

}  // namespace transept
