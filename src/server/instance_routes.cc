#include "server/instance_routes.h"

#include <memory>
#include <string>
#include <vector>

#include "disagg/input_codec.h"
#include "disagg/instance_calls.h"
#include "server/http_errors.h"

namespace transept {
namespace {

// Of `request`, if another instance has sent it and the input is asked for; else what to answer.
std::optional<HttpResponse> find_input(const ServerContext& context, const HttpRequest& request, EcInput& input,
                                       std::shared_ptr<const EncoderItem>& item) {
  const Instance& instance = *context.instance;
  if (!is_from_instance(instance.secret(), request)) {
    return http_error_response(401,
                               instance.secret() == nullptr
                                   ? "this path is for other instances on this machine; --ec-secret-file opens it to others"
                                   : "this path is for other instances of the same --ec-secret-file",
                               "not_an_instance");
  }
  const std::optional<EcInput> named = parse_inputs_path(request.path);
  if (named.has_value()) item = instance.asker()->find(*named);
  if (item == nullptr) return http_error_response(404, "the input is not asked for", "not_found");
  input = *named;
  return std::nullopt;
}

}  // namespace

HttpResponse get_input(const ServerContext& context, const HttpRequest& request) {
  EcInput input;
  std::shared_ptr<const EncoderItem> item;
  if (auto refusal = find_input(context, request, input, item)) return *std::move(refusal);
  std::vector<std::byte> bytes;
  encode_input(*item, bytes);
  HttpResponse response;
  response.content_type = kFeaturesContentType;
  response.body.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return response;
}

HttpResponse refuse_input(const ServerContext& context, const HttpRequest& request) {
  EcInput input;
  std::shared_ptr<const EncoderItem> item;
  if (auto refusal = find_input(context, request, input, item)) return *std::move(refusal);
  Status why;
  if (const Status parsed = parse_refusal(request.body, why); !parsed.ok()) {
    return error_response(parsed, context.admission);
  }
  context.instance->asker()->refuse(input, why);
  return {.body = "{}"};
}

}  // namespace transept
