// The YAML that Marian writes: one map from scalars to scalars and lists of scalars (special:model.yml, vocab.yml,
// decoder.yml). A subset of YAML 1.2: plain and quoted scalars on one line, keys behind "? ", lists in lines and in
// brackets. The text is untrusted. A pure function: thread-safe. Source: yaml.org/spec/1.2.2, 7.3 and 8.2.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace transept {

struct YamlValue {
  std::string text;               // of a scalar, without its quotes; "": none
  std::vector<std::string> list;  // of a list
  bool is_list = false;
};

// In the text's order; a key may be there twice.
using YamlMap = std::vector<std::pair<std::string, YamlValue>>;

// Errors: kInvalidArgument "line N: REASON": a line that is none of the above: maps in maps, anchors, tags, texts of
// several lines; an escape that YAML does not have.
StatusOr<YamlMap> parse_yaml_map(std::string_view text);

// The last of that key; null: there is none.
const YamlValue* find_yaml(const YamlMap& map, std::string_view key);

}  // namespace transept
