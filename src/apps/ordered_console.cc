#include "apps/ordered_console.h"

namespace transept {

OrderedConsole::Slot& OrderedConsole::slot(size_t index) {
  if (slots_.size() <= index - first_) slots_.resize(index - first_ + 1);
  return slots_[index - first_];
}

void OrderedConsole::say(size_t index, std::FILE* to, std::string text) {
  const MutexLock lock(mutex_);
  if (index == first_) return write(to, text);
  slot(index).lines.emplace_back(to, std::move(text));
}

void OrderedConsole::end(size_t index) {
  const MutexLock lock(mutex_);
  slot(index).has_ended = true;
  while (!slots_.empty()) {
    show(slots_.front());  // of the first one still at work: what it said so far
    if (!slots_.front().has_ended) return;
    slots_.pop_front();
    ++first_;
  }
}

void OrderedConsole::end_all() {
  const MutexLock lock(mutex_);
  for (Slot& slot : slots_) show(slot);
  progress_.clear();
}

void OrderedConsole::note(std::string_view text) {
  const MutexLock lock(mutex_);
  write(notes_, text);
}

void OrderedConsole::show(Slot& slot) {
  for (const auto& [to, text] : slot.lines) write(to, text);
  slot.lines.clear();
}

void OrderedConsole::write(std::FILE* to, std::string_view text) {
  progress_.clear();
  const bool is_written = std::fwrite(text.data(), 1, text.size(), to) == text.size() && std::fflush(to) == 0;
  if (to == results_ && !is_written) failed_ = true;
}

void OrderedConsole::show_progress(int64_t done, int64_t total, std::string_view rate) {
  const MutexLock lock(mutex_);
  progress_.update(done, total, rate);
}

bool OrderedConsole::is_ok() const {
  const MutexLock lock(mutex_);
  return !failed_;
}

}  // namespace transept
