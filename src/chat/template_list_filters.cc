#include "chat/template_list_filters.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string>
#include <utility>

#include "base/json_value.h"
#include "chat/template_operators.h"
#include "chat/template_text_operations.h"

namespace tidekv {
namespace {

// A test or filter that map, select... apply to each item.
struct Inner {
  const Builtin* builtin = nullptr;  // none: truth
  std::vector<Value> arguments;

  Result<Value> apply(TemplateRuntime& runtime, const Value& item) const {
    if (builtin == nullptr) {
      return Value{is_true(item)};
    }
    return call_builtin(runtime, *builtin, item, {.positional = arguments, .named = {}});
  }
};

Result<Inner> inner_of(BuiltinCall& call, std::size_t name_at,
                       const Builtin* (*find)(std::string_view)) {
  Inner inner{.builtin = nullptr, .arguments = call.rest};
  if (!call.args[name_at]) {
    return inner;
  }
  const auto* name = call.args[name_at]->get<MarkedText>();
  inner.builtin = name == nullptr ? nullptr : find(name->bytes);
  if (inner.builtin == nullptr) {
    return call.runtime.error(name == nullptr
                                  ? "expected the name of a filter or test, not " +
                                        std::string(type_name(*call.args[name_at]))
                                  : in_quotes(name->bytes) + " is no known filter or test");
  }
  return inner;
}

Result<Value> attribute_at(TemplateRuntime& runtime, Value item, const Value& path) {
  const auto* text = path.get<MarkedText>();
  if (text == nullptr) {
    return item_of(runtime, item, path);
  }
  std::string_view rest = text->bytes;
  while (true) {
    const std::size_t end = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, end);
    Value key{MarkedText{.bytes = part}};
    std::int64_t number = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), number);
    if (!part.starts_with('-') && parsed.ec == std::errc() &&
        parsed.ptr == part.data() + part.size()) {
      key = Value{number};
    }
    TIDEKV_ASSIGN(item, item_of(runtime, item, key));
    if (end == rest.size()) {
      return item;
    }
    rest.remove_prefix(end + 1);
  }
}

// Jinja's select and map take everything false, such as None, for an empty list.
Result<const std::vector<Value>*> items_if_true(const BuiltinCall& call) {
  return items_of(call.runtime, is_true(call.value) ? call.value : Value{Undefined{}});
}

Result<Value> selected(BuiltinCall& call, bool by_attribute, bool wanted) {
  TIDEKV_ASSIGN(const Inner inner, inner_of(call, by_attribute ? 1 : 0, find_test));
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_if_true(call));
  std::vector<Value> kept;
  for (const Value& item : *items) {
    Value tested = item;
    if (by_attribute) {
      TIDEKV_ASSIGN(tested, attribute_at(call.runtime, item, *call.args[0]));
    }
    TIDEKV_ASSIGN(const Value found, inner.apply(call.runtime, tested));
    TIDEKV_TRY(call.runtime.step());
    if (is_true(found) == wanted) {
      kept.push_back(item);
    }
  }
  return call.runtime.list(std::move(kept), ValueList::Kind::kIterator);
}

// What items are compared by: an attribute if one is given, in lower case unless case matters.
Result<std::vector<Value>> keys_of(TemplateRuntime& runtime, const std::vector<Value>& items,
                                   const std::optional<Value>& case_sensitive,
                                   const std::optional<Value>& attribute) {
  std::vector<Value> keys = items;
  const bool keeps_case = case_sensitive && is_true(*case_sensitive);
  for (Value& key : keys) {
    if (attribute && !attribute->is<NoneValue>()) {
      TIDEKV_ASSIGN(key, attribute_at(runtime, key, *attribute));
    }
    if (const auto* text = key.get<MarkedText>(); text != nullptr && !keeps_case) {
      TIDEKV_ASSIGN(key, call_builtin(runtime, *find_filter("lower"), Value{*text}, {}));
    }
  }
  return keys;
}

// Neighbouring sorted runs of indices of `keys`: [begin, middle) and [middle, end).
struct Runs {
  std::size_t begin;
  std::size_t middle;
  std::size_t end;
};

// Both runs of `order` as one into `merged`, the first's before its equals of the second.
Status merge(TemplateRuntime& runtime, const std::vector<Value>& keys, bool reverse,
             const Runs& runs, const std::vector<std::size_t>& order,
             std::vector<std::size_t>& merged) {
  std::size_t left = runs.begin;
  std::size_t right = runs.middle;
  for (std::size_t i = runs.begin; i < runs.end; ++i) {
    bool takes_right = left == runs.middle;
    if (left < runs.middle && right < runs.end) {
      const Value& a = keys[order[reverse ? left : right]];
      const Value& b = keys[order[reverse ? right : left]];
      TIDEKV_ASSIGN(takes_right, is_less(runtime, a, b));
    }
    merged[i] = takes_right ? order[right++] : order[left++];
  }
  return Ok{};
}

// The order of `keys`, stable; merges runs of doubling length.
Result<std::vector<std::size_t>> order_of(TemplateRuntime& runtime, const std::vector<Value>& keys,
                                          bool reverse) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::size_t> merged(order.size());
  for (std::size_t run = 1; run < order.size(); run *= 2) {
    for (std::size_t begin = 0; begin < order.size(); begin += 2 * run) {
      const Runs runs{begin, std::min(begin + run, order.size()),
                      std::min(begin + 2 * run, order.size())};
      TIDEKV_TRY(merge(runtime, keys, reverse, runs, order, merged));
    }
    order.swap(merged);
  }
  return order;
}

Result<Value> extreme(BuiltinCall& call, bool wants_largest) {
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(call.runtime, call.value));
  TIDEKV_ASSIGN(const std::vector<Value> keys,
                keys_of(call.runtime, *items, call.args[0], call.args[1]));
  if (items->empty()) {
    return Value{Undefined{"the item", "an empty list"}};
  }
  std::size_t best = 0;
  for (std::size_t i = 1; i < keys.size(); ++i) {
    const Value& a = wants_largest ? keys[best] : keys[i];
    const Value& b = wants_largest ? keys[i] : keys[best];
    TIDEKV_ASSIGN(const bool better, is_less(call.runtime, a, b));
    best = better ? i : best;
  }
  return (*items)[best];
}

}  // namespace

Result<Value> with_attribute(TemplateRuntime& runtime, const Value& list, const Value& path) {
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(runtime, list));
  std::vector<Value> out;
  for (const Value& item : *items) {
    TIDEKV_ASSIGN(Value value, attribute_at(runtime, item, path));
    out.push_back(value);
  }
  return runtime.list(std::move(out), ValueList::Kind::kIterator);
}

Result<Value> first_item(BuiltinCall& call) {
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(call.runtime, call.value));
  return items->empty() ? Value{Undefined{"the first item", "an empty sequence"}} : items->front();
}

Result<Value> last_item(BuiltinCall& call) {
  const ValueList* list = call.value.list();
  if (list != nullptr && list->kind == ValueList::Kind::kIterator) {
    return call.runtime.error("last takes a list, not " + std::string(type_name(call.value)));
  }
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(call.runtime, call.value));
  return items->empty() ? Value{Undefined{"the last item", "an empty sequence"}} : items->back();
}

Result<Value> as_list(BuiltinCall& call) {
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(call.runtime, call.value));
  TIDEKV_TRY(call.runtime.check_list_size(items->size()));
  return call.runtime.list(*items, ValueList::Kind::kList);
}

Result<Value> dict_pairs(BuiltinCall& call) {
  std::vector<Value> pairs;
  if (const ValueDict* dict = call.value.dict()) {
    for (const auto& [key, value] : dict->entries) {
      TIDEKV_ASSIGN(const Value pair, call.runtime.list({key, value}, ValueList::Kind::kTuple));
      pairs.push_back(pair);
    }
  } else if (!call.value.is<Undefined>()) {
    return call.runtime.error("items takes a dict, not " + std::string(type_name(call.value)));
  }
  return call.runtime.list(std::move(pairs), ValueList::Kind::kIterator);
}

Result<Value> reversed_items(BuiltinCall& call) {
  if (const auto* text = call.value.get<MarkedText>()) {
    TIDEKV_ASSIGN(const MarkedText reversed, reversed_text(call.runtime, *text));
    return Value{reversed};
  }
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(call.runtime, call.value));
  TIDEKV_TRY(call.runtime.check_list_size(items->size()));
  return call.runtime.list({items->rbegin(), items->rend()}, ValueList::Kind::kIterator);
}

Result<Value> map_items(BuiltinCall& call) {
  if (!call.args[0] && !call.args[1]) {
    return call.runtime.error("map needs a filter or an attribute");
  }
  TIDEKV_ASSIGN(const Inner inner, inner_of(call, 0, find_filter));
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_if_true(call));
  std::vector<Value> out;
  for (const Value& item : *items) {
    auto made = call.args[0] ? inner.apply(call.runtime, item)
                             : attribute_at(call.runtime, item, *call.args[1]);
    TIDEKV_ASSIGN(Value value, std::move(made));
    const bool missing = !call.args[0] && value.is<Undefined>() && call.args[2];
    out.push_back(missing ? *call.args[2] : value);
  }
  return call.runtime.list(std::move(out), ValueList::Kind::kIterator);
}

Result<Value> select_items(BuiltinCall& call) { return selected(call, false, true); }
Result<Value> reject_items(BuiltinCall& call) { return selected(call, false, false); }
Result<Value> select_by_attribute(BuiltinCall& call) { return selected(call, true, true); }
Result<Value> reject_by_attribute(BuiltinCall& call) { return selected(call, true, false); }

Result<Value> unique_items(BuiltinCall& call) {
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(call.runtime, call.value));
  TIDEKV_ASSIGN(const std::vector<Value> keys,
                keys_of(call.runtime, *items, call.args[0], call.args[1]));
  std::vector<Value> kept;
  std::vector<std::pair<Value, Value>> seen;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t before = seen.size();
    TIDEKV_TRY(put_entry(call.runtime, seen, keys[i], Value{NoneValue{}}));
    if (seen.size() > before) {
      kept.push_back((*items)[i]);
    }
  }
  return call.runtime.list(std::move(kept), ValueList::Kind::kIterator);
}

Result<Value> sorted_items(BuiltinCall& call) {
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(call.runtime, call.value));
  TIDEKV_ASSIGN(const std::vector<Value> keys,
                keys_of(call.runtime, *items, call.args[1], call.args[2]));
  TIDEKV_ASSIGN(const std::vector<std::size_t> order,
                order_of(call.runtime, keys, call.args[0] && is_true(*call.args[0])));
  std::vector<Value> sorted;
  sorted.reserve(order.size());
  for (const std::size_t i : order) {
    sorted.push_back((*items)[i]);
  }
  return call.runtime.list(std::move(sorted), ValueList::Kind::kList);
}

Result<Value> sorted_dict(BuiltinCall& call) {
  if (call.value.dict() == nullptr) {
    return call.runtime.error("dictsort takes a dict, not " + std::string(type_name(call.value)));
  }
  const auto* by = call.args[1] ? call.args[1]->get<MarkedText>() : nullptr;
  if (call.args[1] && (by == nullptr || (by->bytes != "key" && by->bytes != "value"))) {
    return call.runtime.error("dictsort: by is 'key' or 'value'");
  }
  std::vector<Value> compared;
  std::vector<Value> pairs;
  for (const auto& [key, value] : call.value.dict()->entries) {
    compared.push_back(by != nullptr && by->bytes == "value" ? value : key);
    TIDEKV_ASSIGN(const Value pair, call.runtime.list({key, value}, ValueList::Kind::kTuple));
    pairs.push_back(pair);
  }
  TIDEKV_ASSIGN(const std::vector<Value> keys,
                keys_of(call.runtime, compared, call.args[0], std::nullopt));
  TIDEKV_ASSIGN(const std::vector<std::size_t> order,
                order_of(call.runtime, keys, call.args[2] && is_true(*call.args[2])));
  std::vector<Value> sorted;
  sorted.reserve(order.size());
  for (const std::size_t i : order) {
    sorted.push_back(pairs[i]);
  }
  return call.runtime.list(std::move(sorted), ValueList::Kind::kList);
}

Result<Value> smallest(BuiltinCall& call) { return extreme(call, false); }
Result<Value> largest(BuiltinCall& call) { return extreme(call, true); }

Result<Value> sum_of_items(BuiltinCall& call) {
  Value list = call.value;
  if (call.args[0] && !call.args[0]->is<NoneValue>()) {
    TIDEKV_ASSIGN(list, with_attribute(call.runtime, call.value, *call.args[0]));
  }
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(call.runtime, list));
  Value total = call.args[1] ? *call.args[1] : Value{std::int64_t{0}};
  for (const Value& item : *items) {
    TIDEKV_ASSIGN(total, binary_operation(call.runtime, "+", total, item));
  }
  return total;
}

}  // namespace tidekv
