#include "server/cache_salt.h"

namespace transept {

StatusOr<std::string> cache_salt_of(const ServerContext& context, const HttpRequest& request,
                                    const std::optional<std::string>& own) {
  if (own.has_value() && context.options.role.has_value()) {
    return with_param(unimplemented("cache_salt: instances of a fleet share encoder outputs by their content alone"),
                      "cache_salt");
  }
  return context.salts.salt_of(context.options.cache_scope, api_key_of(request), own);
}

}  // namespace transept
