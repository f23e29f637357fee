// Chat templates: what a model's folder says of how messages become one prompt, in the language of Jinja. This is the
// part of the language that published templates use, as Python's jinja2 3.1 runs it in the environment of transformers
// 5.23 (utils/chat_template_utils.py: ImmutableSandboxedEnvironment, trim_blocks and lstrip_blocks on, loop controls,
// {% generation %}, its own tojson): rendered texts are the same to the byte. Whatever is not supported is refused with
// its name and line, never rendered in another way.
//
//   statements   if, for (with if and else; break, continue), set (names, tuples, attributes of a namespace, blocks),
//                macro, call, filter, with, print, generation, raw, comments
//   expressions  all of Jinja's but slices in tuples; integers have 64 bits
//   filters      filters.h; tests: tests.h; methods of strings, lists and dicts: methods.h
//   functions    range, dict, namespace, raise_exception, strftime_now
//   not          include, import, extends, block, autoescape, recursive loops
//
// A template comes with a model, so it is input: kMaxSourceBytes, levels of nesting, steps, and the size of the output
// are bounded, and bounded steps bound memory and time (heap.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace transept {

namespace jinja {
struct Program;
}

// Owns the parsed template. Immutable after parse(), so thread-safe.
class ChatTemplate final {
 public:
  static constexpr size_t kMaxSourceBytes = size_t{256} << 10;
  static constexpr size_t kMaxOutputBytes = size_t{1} << 20;

  // Errors, all with the line: kInvalidArgument: not a template, or beyond the bounds; kUnimplemented: a construct that
  // is not supported, by name.
  static StatusOr<ChatTemplate> parse(std::string_view source);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // Constructs that are not supported where Jinja looks for them only when they are reached (filters and tests under an
  // {% if %}): "line 3: the filter 'urlize' is not supported". render() fails when it reaches one.
  const std::vector<std::string>& unsupported() const;

  struct Input {
    // A list of objects. Members that are null are left out, and a message that has reasoning_content, thinking or
    // reasoning has all three, as apply_chat_template() of transformers does it.
    const Json& messages;
    // An object: add_generation_prompt, tools, documents, bos_token and others. tools and documents are none and
    // add_generation_prompt is false if they are missing.
    const Json& variables;
    // What strftime_now formats, in the process's time zone.
    std::chrono::system_clock::time_point now = std::chrono::system_clock::now();
  };
  // Errors, with the line: kInvalidArgument: the template's own complaint (raise_exception), or what Python raises for;
  // kResourceExhausted: more than kMaxOutputBytes or jinja::kMaxSteps; kUnimplemented: what is not supported. Messages
  // of a wrong kind are kInvalidArgument with error_param "messages".
  StatusOr<std::string> render(const Input& input) const;

 private:
  explicit ChatTemplate(std::unique_ptr<const jinja::Program> program);

  std::unique_ptr<const jinja::Program> program_;
};

}  // namespace transept
