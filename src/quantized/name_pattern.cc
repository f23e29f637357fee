// Thompson's construction, followed as by K. Thompson, "Regular Expression Search Algorithm" (1968): the set of steps
// that are reached by each byte, so no input takes more than bytes times steps.
#include "quantized/name_pattern.h"

#include <memory>
#include <utility>

namespace transept {
namespace {

constexpr std::string_view kMarker = "re:";
constexpr int kMaxCount = 1000;  // Python's own limit is larger; module names have no thousand parts

using Bytes = NamePattern::Bytes;
using Op = NamePattern::Op;
using Step = NamePattern::Step;

// A part of an expression.
struct Node {
  enum class Kind : uint8_t { kBytes, kSequence, kAlternatives, kRepeat, kBegin, kEnd };
  Kind kind = Kind::kSequence;
  Bytes bytes;
  std::vector<Node> parts;
  int min = 0, max = 0;  // kRepeat; max -1: no end
};

void add_range(Bytes& bytes, unsigned from, unsigned to) {
  for (unsigned c = from; c <= to; ++c) bytes.set(c);
}

// The class that an escaped letter names; false: it names none.
bool add_class(char letter, Bytes& bytes) {
  Bytes own;
  switch (letter) {
    case 'd':
    case 'D': add_range(own, '0', '9'); break;
    case 'w':
    case 'W':
      add_range(own, '0', '9');
      add_range(own, 'a', 'z');
      add_range(own, 'A', 'Z');
      own.set('_');
      break;
    case 's':
    case 'S':
      for (const char c : {' ', '\t', '\n', '\r', '\f', '\v'}) own.set(static_cast<unsigned char>(c));
      break;
    default: return false;
  }
  const bool is_opposite = letter < 'a';
  bytes |= is_opposite ? ~own : own;
  return true;
}

bool is_letter_or_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Parser final {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  StatusOr<Node> parse() {
    ASSIGN_OR_RETURN(Node node, alternatives(0));
    if (at_ < text_.size()) return error("an unmatched )");
    return node;
  }

 private:
  Status error(std::string_view what) const { return invalid_argument(what, " at byte ", at_); }
  bool has(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) {
    if (!has(c)) return false;
    ++at_;
    return true;
  }

  StatusOr<Node> alternatives(int depth) {
    if (depth > NamePattern::kMaxDepth) return error("groups nested too deep");
    Node all{Node::Kind::kAlternatives};
    do {
      ASSIGN_OR_RETURN(Node one, sequence(depth));
      all.parts.push_back(std::move(one));
    } while (take('|'));
    return all;
  }

  StatusOr<Node> sequence(int depth) {
    Node all{Node::Kind::kSequence};
    while (at_ < text_.size() && !has('|') && !has(')')) {
      ASSIGN_OR_RETURN(Node one, atom(depth));
      ASSIGN_OR_RETURN(one, quantified(std::move(one)));
      all.parts.push_back(std::move(one));
    }
    return all;
  }

  StatusOr<Node> atom(int depth) {
    const char c = text_[at_];
    if (c == '(') return group(depth);
    if (c == '[') return bracket();
    if (c == '*' || c == '+' || c == '?') return error("a quantifier without anything before it");
    ++at_;
    Node node{Node::Kind::kBytes};
    switch (c) {
      case '^': return Node{Node::Kind::kBegin};
      case '$': return Node{Node::Kind::kEnd};
      case '.':
        node.bytes.set();
        node.bytes.reset('\n');
        return node;
      case '\\': {
        RETURN_IF_ERROR(escape(node.bytes));
        return node;
      }
      default: node.bytes.set(static_cast<unsigned char>(c)); return node;
    }
  }

  // What stands behind a backslash.
  Status escape(Bytes& bytes) {
    if (at_ == text_.size()) return error("a backslash at the end");
    const char c = text_[at_];
    if (!add_class(c, bytes)) {
      if (is_letter_or_digit(c)) return error(str_cat("\\", c, ", which is not supported,"));
      bytes.set(static_cast<unsigned char>(c));
    }
    ++at_;
    return ok_status();
  }

  StatusOr<Node> group(int depth) {
    ++at_;
    if (has('?')) {
      if (!text_.substr(at_).starts_with("?:"))
        return error("(? of lookaround, flags or a name, which is not supported,");
      at_ += 2;
    }
    ASSIGN_OR_RETURN(Node node, alternatives(depth + 1));
    if (!take(')')) return error("a group that does not end");
    return node;
  }

  StatusOr<Node> bracket() {
    ++at_;
    Node node{Node::Kind::kBytes};
    const bool is_opposite = take('^');
    for (bool is_first = true; is_first || !has(']'); is_first = false) {
      if (at_ >= text_.size()) return error("a class that does not end");
      ASSIGN_OR_RETURN(const int from, class_member(node.bytes));
      const bool is_range = from >= 0 && at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']';
      if (!is_range) continue;
      ++at_;
      ASSIGN_OR_RETURN(const int to, class_member(node.bytes));
      if (to < from) return error("a range of a class that is none");
      add_range(node.bytes, static_cast<unsigned>(from), static_cast<unsigned>(to));
    }
    ++at_;
    if (is_opposite) node.bytes.flip();
    return node;
  }

  // Adds a member of a class. Returns the byte, -1 for a class of bytes.
  StatusOr<int> class_member(Bytes& bytes) {
    if (!take('\\')) {
      const auto byte = static_cast<unsigned char>(text_[at_++]);
      bytes.set(byte);
      return byte;
    }
    Bytes own;
    RETURN_IF_ERROR(escape(own));
    bytes |= own;
    return own.count() == 1 ? static_cast<unsigned char>(text_[at_ - 1]) : -1;
  }

  StatusOr<Node> quantified(Node one) {
    int min = 0, max = -1;
    if (has('{')) {
      RETURN_IF_ERROR(counts(min, max));
    } else if (take('+')) {
      min = 1;
    } else if (take('?')) {
      max = 1;
    } else if (!take('*')) {
      return one;
    }
    take('?');  // lazy: the same matches
    if (has('*') || has('+') || has('?') || has('{')) return error("a quantifier behind a quantifier");
    Node repeat{Node::Kind::kRepeat};
    repeat.parts.push_back(std::move(one));
    repeat.min = min;
    repeat.max = max;
    return repeat;
  }

  Status counts(int& min, int& max) {
    ++at_;
    ASSIGN_OR_RETURN(min, count());
    max = min;
    if (take(',')) {
      max = -1;
      if (!has('}')) {
        ASSIGN_OR_RETURN(max, count());
        if (max < min) return error("{m,n} with n less than m");
      }
    }
    return take('}') ? ok_status() : error("{ without counts and }");
  }

  StatusOr<int> count() {
    int value = -1;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = std::max(value, 0) * 10 + (text_[at_++] - '0');
      if (value > kMaxCount) return error(str_cat("a count over ", kMaxCount));
    }
    return value >= 0 ? StatusOr<int>(value) : error("{ without counts and }");
  }

  std::string_view text_;
  size_t at_ = 0;
};

class Compiler final {
 public:
  Compiler(std::vector<Step>& steps, std::vector<Bytes>& sets) : steps_(steps), sets_(sets) {}

  Status add(const Node& node) {
    switch (node.kind) {
      case Node::Kind::kBytes:
        sets_.push_back(node.bytes);
        return put({Op::kBytes, static_cast<uint32_t>(sets_.size() - 1)});
      case Node::Kind::kBegin: return put({Op::kBegin});
      case Node::Kind::kEnd: return put({Op::kEnd});
      case Node::Kind::kSequence:
        for (const Node& part : node.parts) RETURN_IF_ERROR(add(part));
        return ok_status();
      case Node::Kind::kAlternatives: return add_alternatives(node);
      case Node::Kind::kRepeat: return add_repeat(node);
    }
    return ok_status();
  }

  Status put(const Step& step) {
    if (steps_.size() >= NamePattern::kMaxSteps) {
      return invalid_argument("over the ", NamePattern::kMaxSteps, " steps allowed");
    }
    steps_.push_back(step);
    return ok_status();
  }

 private:
  uint32_t here() const { return static_cast<uint32_t>(steps_.size()); }

  Status add_alternatives(const Node& node) {
    std::vector<uint32_t> jumps;
    for (size_t i = 0; i < node.parts.size(); ++i) {
      const bool is_last = i + 1 == node.parts.size();
      const uint32_t split = here();
      if (!is_last) RETURN_IF_ERROR(put({Op::kSplit, split + 1}));
      RETURN_IF_ERROR(add(node.parts[i]));
      if (is_last) break;
      jumps.push_back(here());
      RETURN_IF_ERROR(put({Op::kJump}));
      steps_[split].other = here();
    }
    for (const uint32_t jump : jumps) steps_[jump].to = here();
    return ok_status();
  }

  Status add_repeat(const Node& node) {
    const Node& one = node.parts.front();
    for (int i = 0; i < node.min; ++i) RETURN_IF_ERROR(add(one));
    if (node.max < 0) {
      const uint32_t split = here();
      RETURN_IF_ERROR(put({Op::kSplit, split + 1}));
      RETURN_IF_ERROR(add(one));
      RETURN_IF_ERROR(put({Op::kJump, split}));
      steps_[split].other = here();
      return ok_status();
    }
    std::vector<uint32_t> splits;
    for (int i = node.min; i < node.max; ++i) {
      splits.push_back(here());
      RETURN_IF_ERROR(put({Op::kSplit, here() + 1}));
      RETURN_IF_ERROR(add(one));
    }
    for (const uint32_t split : splits) steps_[split].other = here();
    return ok_status();
  }

  std::vector<Step>& steps_;
  std::vector<Bytes>& sets_;
};

}  // namespace

StatusOr<NamePattern> NamePattern::parse(std::string_view text) {
  if (text.size() > kMaxBytes) return invalid_argument(text.size(), " bytes are over the ", kMaxBytes, " allowed");
  NamePattern pattern;
  pattern.text_ = text;
  if (!text.starts_with(kMarker)) return pattern;
  const auto compile = [&]() -> Status {
    ASSIGN_OR_RETURN(const Node node, Parser(text.substr(kMarker.size())).parse());
    Compiler compiler(pattern.steps_, pattern.sets_);
    RETURN_IF_ERROR(compiler.add(node));
    return compiler.put({Op::kMatch});
  };
  const Status status = compile();
  if (!status.ok()) return with_prefix(status, str_cat("\"", text.substr(0, 200), "\""));
  return pattern;
}

bool NamePattern::matches(std::string_view name) const {
  if (is_name()) return name == text_;
  std::vector<uint32_t> now = {0}, next, stack;
  std::vector<bool> is_reached;
  for (size_t at = 0; !now.empty(); ++at) {
    is_reached.assign(steps_.size(), false);
    next.clear();
    stack.swap(now);
    while (!stack.empty()) {
      const uint32_t index = stack.back();
      stack.pop_back();
      if (is_reached[index]) continue;
      is_reached[index] = true;
      const Step& step = steps_[index];
      switch (step.op) {
        case Op::kMatch: return true;
        case Op::kJump: stack.push_back(step.to); break;
        case Op::kSplit:
          stack.push_back(step.to);
          stack.push_back(step.other);
          break;
        case Op::kBegin:
          if (at == 0) stack.push_back(index + 1);
          break;
        case Op::kEnd:
          if (at == name.size()) stack.push_back(index + 1);
          break;
        case Op::kBytes:
          if (at < name.size() && sets_[step.to].test(static_cast<unsigned char>(name[at]))) next.push_back(index + 1);
          break;
      }
    }
    now.swap(next);
  }
  return false;
}

}  // namespace transept
