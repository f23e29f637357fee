#include "base/worker_place.h"

#include "base/cpus.h"

namespace transept {

void WorkerPlace::update(Duration now, bool is_shared, int caller_cpu, FunctionRef<Duration()> caller_delay) {
  if (!is_shared || now < free_until_) {
    has_window_ = false;
    return avoid(-1);
  }
  avoid(caller_cpu);
  if (avoided_cpu_ == -1) return;
  if (!has_window_) {
    has_window_ = true;
    num_waited_ = 0;
    window_began_ = now;
    window_delay_ = caller_delay();
    return;
  }
  const Duration length = now - window_began_;
  if (length < SharedProcessor::kWindow) return;
  const Duration total = caller_delay();
  const auto waited = static_cast<double>((total - window_delay_).count());
  num_waited_ = waited >= SharedProcessor::kDelayShare * static_cast<double>(length.count()) ? num_waited_ + 1 : 0;
  window_began_ = now;
  window_delay_ = total;
  if (num_waited_ == SharedProcessor::kWindowsToBegin) free_until_ = now + kFree;
}

void WorkerPlace::avoid(int cpu) {
  if (cpu == avoided_cpu_) return;
  if (own_cpus_.empty()) own_cpus_ = available_cpus();
  std::vector<int> left;
  for (const int own : own_cpus_) {
    if (own != cpu) left.push_back(own);
  }
  if (!left.empty() && place_this_thread(left)) avoided_cpu_ = cpu;
}

}  // namespace transept
