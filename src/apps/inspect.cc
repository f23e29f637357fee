// `transept inspect`: what a model is and needs, without reading its weights.
#include <cstdio>

#include "apps/engine_flags.h"
#include "apps/memory_bandwidth.h"
#include "apps/model_report.h"
#include "apps/stats_json.h"
#include "apps/verbs.h"
#include "base/environment.h"
#include "base/thread_pool.h"
#include "hub/repo_name.h"
#include "startup/model_files.h"

namespace transept {
namespace {

// A model that is refused, as far as its config.json says what it is.
void print_refused(const std::string& name, const std::string& folder, const Status& status, bool as_json) {
  const StatusOr<ModelFiles> files = ModelFiles::open(folder);
  const StatusOr<ModelConfig> config = files.ok() ? ModelConfig::load(files->folder()) : files.status();
  Json report = Json::object();
  report.set("model", name);
  report.set("folder", folder);
  report.set("runs", false);
  report.set("refused", error_message(status));
  report.set("model_type", config.ok() ? Json(config->model_type) : Json());
  report.set("architectures", strings_json(config.ok() ? config->architectures : std::vector<std::string>()));
  const std::string text = as_json ? report.dump() + "\n"
                                   : str_cat("model:          ", name, "\n",
                                             "model type:     ", config.ok() ? config->model_type : "unknown", "\n",
                                             "refused:        ", error_message(status), "\n");
  std::fputs(text.c_str(), stdout);
}

}  // namespace

int run_inspect(const Flags& flags) {
  if (flags.positional().size() != 1) {
    return usage_error("inspect", invalid_argument(flags.positional().empty() ? "which model?" : "one model at a time",
                                                   ": transept inspect MODEL"));
  }
  StatusOr<EngineConfig> config = engine_config(flags);
  const std::string& name = flags.positional()[0];
  if (!config.ok()) {
    // A model of the hub that was looked at, and not fetched.
    if (!absl::IsUnimplemented(config.status()) || !has_repo_form(name)) return usage_error("inspect", config.status());
    print_refused(name, "", config.status(), flags.is_on("json"));
    return kExitSomeFailed;
  }
  config->sizes_only = true;
  const SteadyClock clock;
  const bool as_json = flags.is_on("json");
  const StatusOr<LoadedModel> model = load_engine(*config, clock);
  if (!model.ok()) {
    const std::string why = error_message(model.status());
    if (why.starts_with("--") || why.starts_with("TRANSEPT_")) return usage_error("inspect", model.status());
    print_refused(name, config->model, model.status(), as_json);
    return kExitSomeFailed;
  }
  const double bandwidth = flags.is_on("quick") ? 0 : measure_memory_bandwidth(model->info.num_threads);
  const Json report = model_report(*model, name, bandwidth);
  const std::string text = as_json ? report.dump() + "\n" : model_report_text(report);
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

}  // namespace transept
