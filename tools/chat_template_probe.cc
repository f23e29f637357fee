// Renders chat templates, one a line: what tests/chat_templates/differential.py drives. Not shipped.
//   chat_template_probe < CASES.jsonl
// A line is {"template": TEXT, "messages": [..], "variables": {..}}, the answer {"text": ..} or {"error": .., "code":
// ..}; "stage" is "parse" or "render".
#include <iostream>
#include <string>

#include "base/json.h"
#include "text/chat/chat_template.h"

namespace transept {
namespace {

Json failed(const Status& status, std::string_view stage) {
  Json answer = Json::object();
  answer.set("error", error_message(status));
  answer.set("code", absl::StatusCodeToString(status.code()));
  answer.set("stage", stage);
  return answer;
}

Json answer_to(const Json& request) {
  const StatusOr<ChatTemplate> parsed = ChatTemplate::parse(request.find("template")->as_string());
  if (!parsed.ok()) return failed(parsed.status(), "parse");
  const StatusOr<std::string> text =
      parsed->render({.messages = *request.find("messages"), .variables = *request.find("variables")});
  if (!text.ok()) return failed(text.status(), "render");
  Json answer = Json::object();
  answer.set("text", *text);
  return answer;
}

int run() {
  for (std::string line; std::getline(std::cin, line);) {
    const StatusOr<Json> request = Json::parse(line);
    if (!request.ok()) {
      std::cerr << error_message(request.status()) << '\n';
      return 1;
    }
    std::cout << answer_to(*request).dump() << '\n' << std::flush;
  }
  return 0;
}

}  // namespace
}  // namespace transept

int main() { return transept::run(); }
