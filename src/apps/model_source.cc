#include "apps/model_source.h"

#include <optional>

#include "apps/fetch_display.h"
#include "apps/hub_flags.h"
#include "startup/find_model.h"

namespace transept {

namespace {

StatusOr<std::string> resolve(const Flags& flags, const std::string& wanted, const std::string& revision,
                              ModelParts parts) {
  FindModelOptions options;
  options.revision = revision;
  options.parts = parts;
  bool is_quiet = false;
  options.hub_settings = [&]() -> StatusOr<HubSettings> {
    ASSIGN_OR_RETURN(HubSettings settings, hub_settings(flags));
    is_quiet = settings.is_quiet;
    return settings;
  };
  std::optional<FetchDisplay> display;
  options.on_progress = [&](const std::string& name, int64_t done, int64_t total) {
    if (!display.has_value()) display.emplace(name, is_quiet);
    display->show(done, total);
  };
  options.on_fetched = [&] {
    if (display.has_value()) display->clear();
  };
  return find_model(wanted, options);
}

}  // namespace

StatusOr<std::string> resolve_model(const Flags& flags, ModelParts parts) {
  return resolve(flags, flags.positional().at(0), flags.text_or("revision", ""), parts);
}

StatusOr<std::string> resolve_other_model(const Flags& flags, const std::string& name, ModelParts parts) {
  return resolve(flags, name, "", parts);
}

}  // namespace transept
