#include "text/chat/generators.h"

#include <algorithm>

#include "text/chat/filters.h"
#include "text/chat/tests.h"
#include "text/chat/value_ops.h"

namespace transept::jinja {
namespace {

Value of_iterator(Heap& heap, std::unique_ptr<Iterator> iterator) {
  return point_to(Kind::kIterator, &Value::iterator, &heap.adopt(std::move(iterator)));
}

// A generator of Python: nothing runs before the first item is asked for.
class Generator : public Iterator {
 public:
  explicit Generator(const Value& source) : source_(source) {}

  StatusOr<bool> next(Heap& heap, Value& out) final {
    if (++heap.nesting() > Heap::kMaxNesting) return invalid_argument("generators visit generators too deeply");
    StatusOr<bool> more = next_within(heap, out);
    --heap.nesting();
    return more;
  }

 protected:
  // Null: there are no items.
  virtual StatusOr<Iterator*> start(Heap& heap) = 0;
  virtual StatusOr<bool> next_of(Heap& heap, Iterator& items, Value& out) { return items.next(heap, out); }

  Value source_;

 private:
  StatusOr<bool> next_within(Heap& heap, Value& out) {
    if (!started_) {
      started_ = true;
      ASSIGN_OR_RETURN(items_, start(heap));
    }
    return items_ == nullptr ? StatusOr<bool>(false) : next_of(heap, *items_, out);
  }

  bool started_ = false;
  Iterator* items_ = nullptr;
};

class ItemsGenerator final : public Generator {
 public:
  using Generator::Generator;

 private:
  StatusOr<Iterator*> start(Heap& heap) override {
    if (source_.is(Kind::kUndefined)) return nullptr;
    if (!source_.is(Kind::kDict)) return invalid_argument("items needs a dict, not ", type_name(source_));
    DictView& view = heap.make<DictView>();
    view.dict = source_.dict;
    view.part = DictView::Part::kItems;
    return iterate(heap, point_to<const DictView*>(Kind::kDictView, &Value::view, &view));
  }
};

class MapGenerator final : public Generator {
 public:
  MapGenerator(const Value& source, Arguments arguments) : Generator(source), arguments_(std::move(arguments)) {}

 private:
  StatusOr<Iterator*> start(Heap& heap) override {
    if (!truth(source_)) return nullptr;
    RETURN_IF_ERROR(prepare(heap));
    return iterate(heap, source_);
  }

  Status prepare(Heap& heap) {
    const auto is_attribute = [](const auto& named) { return named.first == "attribute"; };
    if (arguments_.places.empty() && std::any_of(arguments_.names.begin(), arguments_.names.end(), is_attribute)) {
      ASSIGN_OR_RETURN(const std::vector<Value> bound, bind("map", arguments_, {{"attribute"}, {"default"}}));
      ASSIGN_OR_RETURN(path_, AttributePath::parse(heap, bound[0]));
      fallback_ = bound[1];
      return ok_status();
    }
    if (arguments_.places.empty()) return invalid_argument("map needs a filter");
    ASSIGN_OR_RETURN(const std::string_view name, text_of(arguments_.places[0], "the filter of map"));
    filter_ = find_filter(name);
    if (filter_ == nullptr) return unknown_filter(name);
    arguments_.places.erase(arguments_.places.begin());
    return ok_status();
  }

  StatusOr<bool> next_of(Heap& heap, Iterator& items, Value& out) override {
    Value value;
    ASSIGN_OR_RETURN(const bool more, items.next(heap, value));
    if (!more) return false;
    if (filter_ != nullptr) {
      ASSIGN_OR_RETURN(out, apply_filter(heap, *filter_, value, arguments_));
    } else {
      ASSIGN_OR_RETURN(out, path_.get(heap, value, fallback_));
    }
    return true;
  }

  Arguments arguments_;
  AttributePath path_;
  Value fallback_;
  const Filter* filter_ = nullptr;
};

class SelectGenerator final : public Generator {
 public:
  SelectGenerator(const Value& source, Arguments arguments, bool of_attribute, bool wanted)
      : Generator(source), arguments_(std::move(arguments)), of_attribute_(of_attribute), wanted_(wanted) {}

 private:
  StatusOr<Iterator*> start(Heap& heap) override {
    if (!truth(source_)) return nullptr;
    std::vector<Value>& places = arguments_.places;
    if (of_attribute_) {
      if (places.empty()) return invalid_argument("the name of an attribute is missing");
      ASSIGN_OR_RETURN(path_, AttributePath::parse(heap, places[0]));
      places.erase(places.begin());
    }
    if (!places.empty()) {
      ASSIGN_OR_RETURN(const std::string_view name, text_of(places[0], "the name of a test"));
      test_ = find_test(name);
      if (test_ == nullptr) return unknown_test(name);
      places.erase(places.begin());
    }
    return iterate(heap, source_);
  }

  StatusOr<bool> next_of(Heap& heap, Iterator& items, Value& out) override {
    while (true) {
      ASSIGN_OR_RETURN(const bool more, items.next(heap, out));
      if (!more) return false;
      ASSIGN_OR_RETURN(const Value tested, path_.get(heap, out));
      bool holds = truth(tested);
      if (test_ != nullptr) {
        ASSIGN_OR_RETURN(holds, test_->apply(heap, tested, arguments_));
      }
      if (holds == wanted_) return true;
    }
  }

  Arguments arguments_;
  bool of_attribute_, wanted_;
  AttributePath path_;
  const Test* test_ = nullptr;
};

class UniqueGenerator final : public Generator {
 public:
  UniqueGenerator(const Value& source, AttributePath path, bool case_sensitive)
      : Generator(source), path_(std::move(path)), case_sensitive_(case_sensitive) {}

 private:
  StatusOr<Iterator*> start(Heap& heap) override {
    seen_ = heap.dict({}).dict;
    return iterate(heap, source_);
  }

  StatusOr<bool> next_of(Heap& heap, Iterator& items, Value& out) override {
    while (true) {
      ASSIGN_OR_RETURN(const bool more, items.next(heap, out));
      if (!more) return false;
      ASSIGN_OR_RETURN(const Value found, path_.get(heap, out));
      const Value key = without_case(heap, found, case_sensitive_);
      ASSIGN_OR_RETURN(const Value* const seen, find_key(heap, *seen_, key));
      if (seen != nullptr) continue;
      RETURN_IF_ERROR(set_key(heap, *seen_, key, none()));
      return true;
    }
  }

  AttributePath path_;
  bool case_sensitive_;
  Dict* seen_ = nullptr;
};

}  // namespace

Value items_generator(Heap& heap, const Value& source) {
  return of_iterator(heap, std::make_unique<ItemsGenerator>(source));
}

Value map_generator(Heap& heap, const Value& source, const Arguments& arguments) {
  return of_iterator(heap, std::make_unique<MapGenerator>(source, arguments));
}

Value select_generator(Heap& heap, const Value& source, const Arguments& arguments, bool of_attribute, bool wanted) {
  return of_iterator(heap, std::make_unique<SelectGenerator>(source, arguments, of_attribute, wanted));
}

Value unique_generator(Heap& heap, const Value& source, AttributePath path, bool case_sensitive) {
  return of_iterator(heap, std::make_unique<UniqueGenerator>(source, std::move(path), case_sensitive));
}

}  // namespace transept::jinja
