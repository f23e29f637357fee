// For tests: scenarios as text files. A line is a command, its arguments, name=value options, and after "->" the
// expected answer; '#' starts a comment. The test defines the commands. It must fail on words that it did not take from
// a line (rest()), so that a misspelt word is an error.
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/input_file.h"
#include "base/strings.h"

namespace transept {

class ScenarioLine final {
 public:
  ScenarioLine(std::string where, std::string_view text) : where_(std::move(where)), text_(trim(text)) {
    text = text_;
    if (const size_t arrow = text.find("->"); arrow != std::string_view::npos) {
      expected_ = std::string(trim(text.substr(arrow + 2)));
      text = text.substr(0, arrow);
    }
    for (const std::string_view word : split(text, ' ')) {
      if (!trim(word).empty()) words_.emplace_back(trim(word));
    }
  }

  const std::string& where() const { return where_; }  // "file.txt:12: text"
  const std::optional<std::string>& expected() const { return expected_; }

  // Takes the next argument from the line; "": there is none.
  std::string next() {
    const auto word = std::find_if(words_.begin(), words_.end(),
                                   [](const std::string& w) { return w.find('=') == std::string::npos; });
    if (word == words_.end()) return "";
    std::string taken = std::move(*word);
    words_.erase(word);
    return taken;
  }
  // Takes `name`=value from the line and returns the value.
  std::optional<std::string> option(std::string_view name) {
    const std::string prefix = str_cat(name, "=");
    const auto word = std::find_if(words_.begin(), words_.end(),
                                   [&](const std::string& w) { return w.compare(0, prefix.size(), prefix) == 0; });
    if (word == words_.end()) return std::nullopt;
    std::string value = word->substr(prefix.size());
    words_.erase(word);
    return value;
  }
  int32_t number(std::string_view name, int32_t fallback) {
    const auto value = option(name);
    return value ? std::stoi(*value) : fallback;
  }
  // Takes the remaining name=value options from the line: those that `expect` compares.
  std::vector<std::pair<std::string, std::string>> all_options() {
    std::vector<std::pair<std::string, std::string>> all;
    for (const std::string& word : words_) {
      if (const size_t equals = word.find('='); equals != std::string::npos) {
        all.emplace_back(word.substr(0, equals), word.substr(equals + 1));
      }
    }
    std::erase_if(words_, [](const std::string& w) { return w.find('=') != std::string::npos; });
    return all;
  }
  // Returns the words that were not taken.
  std::string rest() const { return join(words_, " "); }

 private:
  std::string where_;
  std::string text_;
  std::vector<std::string> words_;
  std::optional<std::string> expected_;
};

// Reads every *.txt of a folder, in order of name; returns the lines of each. An unreadable file is a CHECK.
inline std::vector<std::vector<ScenarioLine>> read_scenarios(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::vector<ScenarioLine>> files;
  for (const auto& path : paths) {
    const auto text = read_file(path.string());
    CHECK(text.ok(), error_message(text.status()));
    std::vector<ScenarioLine> lines;
    int number = 0;
    for (std::string_view line : split(*text, '\n')) {
      ++number;
      line = trim(line.substr(0, line.find('#')));
      if (line.empty()) continue;
      lines.emplace_back(str_cat(path.filename().string(), ":", number, ": ", line), line);
    }
    files.push_back(std::move(lines));
  }
  return files;
}

}  // namespace transept
