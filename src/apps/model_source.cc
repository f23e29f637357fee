#include "apps/model_source.h"

#include <optional>

#include "apps/fetch_display.h"
#include "apps/hub_flags.h"
#include "startup/find_model.h"

namespace transept {

StatusOr<std::string> resolve_model(const Flags& flags, ModelParts parts) {
  FindModelOptions options;
  options.revision = flags.text_or("revision", "");
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
  return find_model(flags.positional().at(0), options);
}

}  // namespace transept
