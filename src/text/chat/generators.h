// The filters that are generators in Jinja: nothing of them runs before the first item is asked for, and they are
// visited once. Values of the heap's owner.
#pragma once

#include "text/chat/arguments.h"
#include "text/chat/attribute_path.h"
#include "text/chat/heap.h"

namespace transept::jinja {

Value items_generator(Heap& heap, const Value& source);
Value map_generator(Heap& heap, const Value& source, const Arguments& arguments);
// select, reject, selectattr, rejectattr.
Value select_generator(Heap& heap, const Value& source, const Arguments& arguments, bool of_attribute, bool wanted);
Value unique_generator(Heap& heap, const Value& source, AttributePath path, bool case_sensitive);

}  // namespace transept::jinja
