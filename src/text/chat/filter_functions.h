// The functions behind filters.h, by their names in Jinja: scalar_filters.cc and sequence_filters.cc.
#pragma once

#include "text/chat/arguments.h"
#include "text/chat/heap.h"

namespace transept::jinja::filter {

// Texts and numbers.
StatusOr<Value> abs(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> attr(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> capitalize(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> default_value(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> float_value(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> format(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> indent(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> int_value(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> length(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> lower(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> replace(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> round(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> safe(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> string(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> title(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> tojson(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> trim(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> upper(Heap& heap, const Value& value, const Arguments& arguments);

// Sequences and dicts.
StatusOr<Value> dictsort(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> first(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> items(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> join(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> last(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> list(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> map(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> max(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> min(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> reject(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> rejectattr(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> reverse(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> select(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> selectattr(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> sort(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> sum(Heap& heap, const Value& value, const Arguments& arguments);
StatusOr<Value> unique(Heap& heap, const Value& value, const Arguments& arguments);

}  // namespace transept::jinja::filter
