// For tests: a strict reader of Prometheus' text format (exposition format 0.0.4), which says what is wrong.
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/strings.h"

namespace transept::testing {

using MetricLabels = std::map<std::string, std::string>;

class PrometheusText final {
 public:
  struct Family {
    std::string type, help;
    std::map<std::string, std::map<MetricLabels, double>> samples;  // by the whole name: with _bucket, _sum, _count
  };

  static StatusOr<PrometheusText> parse(std::string_view text) {
    PrometheusText parsed;
    if (!text.ends_with('\n')) return invalid_argument("the last line has no end");
    for (const std::string_view line : split(text.substr(0, text.size() - 1), '\n')) {
      if (const Status status = parsed.read_line(line); !status.ok()) return with_prefix(status, line);
    }
    for (const auto& [name, family] : parsed.families_) {
      if (const Status status = check(name, family); !status.ok()) return with_prefix(status, name);
    }
    return parsed;
  }

  const std::map<std::string, Family>& families() const { return families_; }
  // The value of a series; NaN: there is none.
  double value(std::string_view name, const MetricLabels& labels) const {
    for (const auto& [family_name, family] : families_) {
      const auto series = family.samples.find(std::string(name));
      if (series == family.samples.end()) continue;
      const auto sample = series->second.find(labels);
      if (sample != series->second.end()) return sample->second;
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

 private:
  static bool is_name(std::string_view name, bool with_colon) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
    for (const char c : name) {
      const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      if (!is_word && !(with_colon && c == ':')) return false;
    }
    return true;
  }

  static StatusOr<double> number(std::string_view text) {
    if (text == "+Inf") return std::numeric_limits<double>::infinity();
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return invalid_argument("no number: ", text);
    return value;
  }

  Status read_line(std::string_view line) {
    if (line.empty()) return invalid_argument("an empty line");
    if (line.starts_with("# HELP ")) return read_help(line.substr(7));
    if (line.starts_with("# TYPE ")) return read_type(line.substr(7));
    if (line.starts_with("#")) return invalid_argument("a comment of no kind");
    return read_sample(line);
  }

  // HELP, then TYPE, then samples, of one family after another.
  Status read_help(std::string_view rest) {
    const size_t space = rest.find(' ');
    const std::string name(rest.substr(0, space));
    if (!is_name(name, true) || space == std::string_view::npos) return invalid_argument("a name and a help");
    if (families_.contains(name)) return invalid_argument("the family is there already");
    current_ = name;
    families_[name].help = rest.substr(space + 1);
    return families_[name].help.empty() ? invalid_argument("no help") : ok_status();
  }

  Status read_type(std::string_view rest) {
    const size_t space = rest.find(' ');
    if (rest.substr(0, space) != current_) return invalid_argument("TYPE without its HELP");
    static const std::set<std::string> kTypes = {"counter", "gauge", "histogram"};
    Family& family = families_[current_];
    if (!family.type.empty()) return invalid_argument("a second TYPE");
    family.type = rest.substr(space + 1);
    return kTypes.contains(family.type) ? ok_status() : invalid_argument("an unknown type");
  }

  Status read_sample(std::string_view line) {
    const size_t name_end = line.find_first_of("{ ");
    const std::string name(line.substr(0, name_end));
    Family& family = families_[current_];
    if (family.type.empty()) return invalid_argument("a sample before its TYPE");
    const bool is_histogram = family.type == "histogram";
    const bool is_own = is_histogram
                            ? name == current_ + "_bucket" || name == current_ + "_sum" || name == current_ + "_count"
                            : name == current_;
    if (!is_own) return invalid_argument("a sample of another family than ", current_);
    std::string_view rest = line.substr(name_end);
    MetricLabels labels;
    if (rest.starts_with('{')) RETURN_IF_ERROR(read_labels(rest, labels));
    if (!rest.starts_with(' ')) return invalid_argument("no space before the value");
    ASSIGN_OR_RETURN(const double value, number(rest.substr(1)));
    if (std::isnan(value) || (family.type != "gauge" && value < 0)) return invalid_argument("no count");
    if (name.ends_with("_bucket") && is_histogram) RETURN_IF_ERROR(take_bucket(labels, value));
    if (!family.samples[name].emplace(std::move(labels), value).second) return invalid_argument("a series twice");
    return ok_status();
  }

  // Moves `rest` behind the '}'.
  static Status read_labels(std::string_view& rest, MetricLabels& labels) {
    rest.remove_prefix(1);
    while (true) {
      const size_t equals = rest.find('=');
      if (equals == std::string_view::npos) return invalid_argument("a label without a value");
      const std::string name(rest.substr(0, equals));
      if (!is_name(name, false)) return invalid_argument("a label of the name ", name);
      rest.remove_prefix(equals + 1);
      std::string value;
      RETURN_IF_ERROR(read_quoted(rest, value));
      if (!labels.emplace(name, std::move(value)).second) return invalid_argument("a label twice");
      if (rest.empty()) return invalid_argument("labels without an end");
      const char next = rest[0];
      rest.remove_prefix(1);
      if (next == '}') return ok_status();
      if (next != ',') return invalid_argument("labels without a comma");
    }
  }

  static Status read_quoted(std::string_view& rest, std::string& value) {
    if (!rest.starts_with('"')) return invalid_argument("a label's value without quotes");
    size_t at = 1;
    for (; at < rest.size() && rest[at] != '"'; ++at) {
      if (rest[at] != '\\') {
        value += rest[at];
        continue;
      }
      if (++at == rest.size()) break;
      if (rest[at] != '\\' && rest[at] != '"' && rest[at] != 'n') return invalid_argument("an unknown escape");
      value += rest[at] == 'n' ? '\n' : rest[at];
    }
    if (at >= rest.size()) return invalid_argument("a label's value without an end");
    rest.remove_prefix(at + 1);
    return ok_status();
  }

  // Buckets of a series stand in the order of their bounds, and none holds less than the one before.
  Status take_bucket(const MetricLabels& labels, double count) {
    MetricLabels series = labels;
    const auto le = series.find("le");
    if (le == series.end()) return invalid_argument("a bucket without le");
    ASSIGN_OR_RETURN(const double bound, number(le->second));
    series.erase(le);
    std::vector<std::pair<double, double>>& buckets = buckets_[current_][series];
    if (!buckets.empty() && bound <= buckets.back().first) return invalid_argument("le does not ascend");
    if (!buckets.empty() && count < buckets.back().second) return invalid_argument("a bucket below the one before");
    buckets.emplace_back(bound, count);
    families_[current_].samples[current_ + "_inf"][series] = std::isinf(bound) ? count : -1;
    return ok_status();
  }

  static Status check(const std::string& name, const Family& family) {
    if (family.type.empty()) return invalid_argument("no TYPE");
    if (family.samples.empty()) return invalid_argument("no samples");
    if (family.type != "histogram") return ok_status();
    for (const char* part : {"_bucket", "_sum", "_count"}) {
      if (!family.samples.contains(name + part)) return invalid_argument("no ", part);
    }
    for (const auto& [labels, count] : family.samples.at(name + "_count")) {
      const auto& last = family.samples.at(name + "_inf");
      const auto found = last.find(labels);
      if (found == last.end() || found->second != count) return invalid_argument("+Inf is not the count");
      if (!family.samples.at(name + "_sum").contains(labels)) return invalid_argument("a count without a sum");
    }
    return ok_status();
  }

  std::map<std::string, Family> families_;
  std::map<std::string, std::map<MetricLabels, std::vector<std::pair<double, double>>>> buckets_;
  std::string current_;
};

}  // namespace transept::testing
