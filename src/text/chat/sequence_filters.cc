// Filters of sequences and dicts.
#include <algorithm>

#include "text/chat/attribute_path.h"
#include "text/chat/filter_functions.h"
#include "text/chat/generators.h"
#include "text/chat/sorting.h"
#include "text/chat/text_ops.h"
#include "text/chat/value_ops.h"

namespace transept::jinja::filter {
namespace {

using Bound = std::vector<Value>;

bool given_true(const Value& value) { return !value.missing() && truth(value); }

StatusOr<Value> least_or_most(Heap& heap, const Value& value, const Arguments& arguments, bool most) {
  ASSIGN_OR_RETURN(const Bound bound, bind(most ? "max" : "min", arguments, {{"case_sensitive"}, {"attribute"}}));
  ASSIGN_OR_RETURN(const std::vector<Value> items, items_of(heap, value));
  if (items.empty()) return heap.undefined_because("No aggregated item, sequence was empty.");
  ASSIGN_OR_RETURN(const AttributePath path, AttributePath::parse(heap, bound[1]));
  size_t best = 0;
  Value best_key;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(const Value found, path.get(heap, items[i]));
    const Value key = without_case(heap, found, given_true(bound[0]));
    bool better = i == 0;
    if (i > 0) {
      ASSIGN_OR_RETURN(better, most ? is_less(heap, best_key, key) : is_less(heap, key, best_key));
    }
    if (better) {
      best = i;
      best_key = key;
    }
  }
  return items[best];
}

StatusOr<Value> in_order(Heap& heap, const std::vector<Value>& items, const std::vector<Value>& keys, bool reverse) {
  ASSIGN_OR_RETURN(const std::vector<size_t> order, sorted_order(heap, keys, reverse));
  std::vector<Value> sorted;
  sorted.reserve(items.size());
  for (const size_t i : order) sorted.push_back(items[i]);
  return heap.list(std::move(sorted));
}

}  // namespace

StatusOr<Value> dictsort(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("dictsort", arguments, {{"case_sensitive"}, {"by"}, {"reverse"}}));
  std::string_view by = "key";
  if (!bound[1].missing()) {
    ASSIGN_OR_RETURN(by, text_of(bound[1], "what is sorted by"));
  }
  if (by != "key" && by != "value") return invalid_argument("dictsort sorts by \"key\" or \"value\"");
  if (!value.is(Kind::kDict)) return invalid_argument("dictsort needs a dict, not ", type_name(value));
  std::vector<Value> items;
  std::vector<Value> keys;
  for (const auto& [key, member] : value.dict->items) {
    RETURN_IF_ERROR(heap.charge());
    items.push_back(heap.tuple({key, member}));
    keys.push_back(without_case(heap, by == "key" ? key : member, given_true(bound[0])));
  }
  return in_order(heap, items, keys, given_true(bound[2]));
}

StatusOr<Value> first(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("first", arguments, {}).status());
  ASSIGN_OR_RETURN(Iterator* const iterator, iterate(heap, value));
  Value found;
  ASSIGN_OR_RETURN(const bool more, iterator->next(heap, found));
  return more ? found : heap.undefined_because("No first item, sequence was empty.");
}

StatusOr<Value> items(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("items", arguments, {}).status());
  return items_generator(heap, value);
}

StatusOr<Value> join(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("join", arguments, {{"d"}, {"attribute"}}));
  ASSIGN_OR_RETURN(const AttributePath path, AttributePath::parse(heap, bound[1]));
  std::string separator;
  if (!bound[0].missing()) {
    ASSIGN_OR_RETURN(separator, to_string(heap, bound[0]));
  }
  ASSIGN_OR_RETURN(Iterator* const iterator, iterate(heap, value));
  TextBuilder out(heap);
  for (bool is_first = true;; is_first = false) {
    Value part;
    ASSIGN_OR_RETURN(const bool more, iterator->next(heap, part));
    if (!more) return heap.text(out.take());
    if (!is_first) RETURN_IF_ERROR(out.append(separator));
    ASSIGN_OR_RETURN(part, path.get(heap, part));
    RETURN_IF_ERROR(append_str(out, part));
  }
}

StatusOr<Value> last(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("last", arguments, {}).status());
  ASSIGN_OR_RETURN(Iterator* const iterator, iterate_reversed(heap, value));
  Value found;
  ASSIGN_OR_RETURN(const bool more, iterator->next(heap, found));
  return more ? found : heap.undefined_because("No last item, sequence was empty.");
}

StatusOr<Value> list(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("list", arguments, {}).status());
  ASSIGN_OR_RETURN(std::vector<Value> found, items_of(heap, value));
  return heap.list(std::move(found));
}

StatusOr<Value> map(Heap& heap, const Value& value, const Arguments& arguments) {
  return map_generator(heap, value, arguments);
}

StatusOr<Value> max(Heap& heap, const Value& value, const Arguments& arguments) {
  return least_or_most(heap, value, arguments, /*most=*/true);
}

StatusOr<Value> min(Heap& heap, const Value& value, const Arguments& arguments) {
  return least_or_most(heap, value, arguments, /*most=*/false);
}

StatusOr<Value> reject(Heap& heap, const Value& value, const Arguments& arguments) {
  return select_generator(heap, value, arguments, /*of_attribute=*/false, /*wanted=*/false);
}

StatusOr<Value> rejectattr(Heap& heap, const Value& value, const Arguments& arguments) {
  return select_generator(heap, value, arguments, /*of_attribute=*/true, /*wanted=*/false);
}

StatusOr<Value> reverse(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("reverse", arguments, {}).status());
  if (value.is(Kind::kText)) return slice(heap, value, Value(), Value(), integer(-1));
  if (value.is(Kind::kIterator)) {
    ASSIGN_OR_RETURN(std::vector<Value> found, items_of(heap, value));
    std::reverse(found.begin(), found.end());
    return heap.list(std::move(found));
  }
  ASSIGN_OR_RETURN(Iterator* const iterator, iterate_reversed(heap, value));
  return point_to(Kind::kIterator, &Value::iterator, iterator);
}

StatusOr<Value> select(Heap& heap, const Value& value, const Arguments& arguments) {
  return select_generator(heap, value, arguments, /*of_attribute=*/false, /*wanted=*/true);
}

StatusOr<Value> selectattr(Heap& heap, const Value& value, const Arguments& arguments) {
  return select_generator(heap, value, arguments, /*of_attribute=*/true, /*wanted=*/true);
}

StatusOr<Value> sort(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("sort", arguments, {{"reverse"}, {"case_sensitive"}, {"attribute"}}));
  std::vector<AttributePath> paths;
  if (bound[2].is(Kind::kText)) {
    RETURN_IF_ERROR(heap.charge(1 + static_cast<int64_t>(bound[2].text->view.size())));
    for (const std::string_view part : split_text(bound[2].text->view, ",", -1, /*from_right=*/false)) {
      ASSIGN_OR_RETURN(paths.emplace_back(), AttributePath::parse(heap, heap.text(std::string(part))));
    }
  } else {
    ASSIGN_OR_RETURN(paths.emplace_back(), AttributePath::parse(heap, bound[2]));
  }
  ASSIGN_OR_RETURN(const std::vector<Value> found, items_of(heap, value));
  std::vector<Value> keys;
  for (const Value& entry : found) {
    std::vector<Value> key;
    for (const AttributePath& path : paths) {
      ASSIGN_OR_RETURN(const Value part, path.get(heap, entry));
      key.push_back(without_case(heap, part, given_true(bound[1])));
    }
    RETURN_IF_ERROR(heap.charge());
    keys.push_back(heap.list(std::move(key)));
  }
  return in_order(heap, found, keys, given_true(bound[0]));
}

StatusOr<Value> sum(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("sum", arguments, {{"attribute"}, {"start"}}));
  ASSIGN_OR_RETURN(const AttributePath path, AttributePath::parse(heap, bound[0]));
  Value total = bound[1].missing() ? integer(0) : bound[1];
  if (total.is(Kind::kText)) return invalid_argument("sum cannot add texts");
  ASSIGN_OR_RETURN(Iterator* const iterator, iterate(heap, value));
  while (true) {
    Value part;
    ASSIGN_OR_RETURN(const bool more, iterator->next(heap, part));
    if (!more) return total;
    ASSIGN_OR_RETURN(part, path.get(heap, part));
    ASSIGN_OR_RETURN(total, binary(heap, BinaryOp::kAdd, total, part));
  }
}

StatusOr<Value> unique(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("unique", arguments, {{"case_sensitive"}, {"attribute"}}));
  ASSIGN_OR_RETURN(AttributePath path, AttributePath::parse(heap, bound[1]));
  return unique_generator(heap, value, std::move(path), given_true(bound[0]));
}

}  // namespace transept::jinja::filter
