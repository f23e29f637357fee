#include "server/encoded_inputs.h"

#include <set>

#include "disagg/instance_calls.h"

namespace transept {

StatusOr<InjectedInputs> read_injected_inputs(const Json& body, size_t num_prompts) {
  const Json* field = body.find(kEncodedInputs);
  if (field == nullptr || field->is_null()) return InjectedInputs();
  ASSIGN_OR_RETURN(InjectedInputs inputs, read_encoded_inputs(*field, num_prompts));
  std::set<std::string> names;
  for (const auto& one : inputs) {
    if (!one.has_value() || (one->input.input_id == 0 && names.insert(one->input.request_id).second)) continue;
    return field_error(kEncodedInputs,
                       str_cat(kEncodedInputs, ": each prompt has a request_id of its own, and input_id 0"));
  }
  return inputs;
}

StatusOr<InjectedInputs> injected_inputs(const ServerContext& context, const HttpRequest& request, const Json& body,
                                         size_t num_prompts) {
  const Json* field = body.find(kEncodedInputs);
  if (field == nullptr || field->is_null()) return InjectedInputs();
  // Without a secret whoever is on this machine would be believed, and so would clients of a proxy there: it takes the
  // header from what they send.
  const bool is_proof = context.instance != nullptr && request.header(kInstanceCodeHeader) != nullptr &&
                        is_from_instance(context.instance->secret(), request);
  if (!is_proof) {
    return field_error(kEncodedInputs, str_cat(kEncodedInputs,
                                               " is for a proxy of the same fleet and --ec-secret-file: clients give "
                                               "the prompts alone"));
  }
  return read_injected_inputs(body, num_prompts);
}

}  // namespace transept
