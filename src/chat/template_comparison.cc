// Equality, order and membership of template values.
#include <algorithm>
#include <cstdint>

#include "chat/template_operators.h"

namespace tidekv {
namespace {

// Exact, as Python compares an int with a float.
int compare_numbers(const Value& left, const Value& right) {
  std::int64_t a = 0;
  std::int64_t b = 0;
  const std::int64_t* whole_left = integer_of(left, a);
  const std::int64_t* whole_right = integer_of(right, b);
  if (whole_left != nullptr && whole_right != nullptr) {
    return *whole_left < *whole_right ? -1 : (*whole_left > *whole_right ? 1 : 0);
  }
  const auto x = static_cast<long double>(number_of(left));
  const auto y = static_cast<long double>(number_of(right));
  const long double exact_x = whole_left != nullptr ? static_cast<long double>(*whole_left) : x;
  const long double exact_y = whole_right != nullptr ? static_cast<long double>(*whole_right) : y;
  return exact_x < exact_y ? -1 : (exact_x > exact_y ? 1 : 0);
}

bool is_lazy(const ValueList& list) {
  return list.kind == ValueList::Kind::kIterator || list.kind == ValueList::Kind::kView;
}

Result<bool> equal_lists(TemplateRuntime& runtime, const ValueList& left, const ValueList& right) {
  if (&left == &right) {
    return true;
  }
  if (left.kind != right.kind || is_lazy(left) || left.items.size() != right.items.size()) {
    return false;
  }
  for (std::size_t i = 0; i < left.items.size(); ++i) {
    TIDEKV_ASSIGN(const bool same, equals(runtime, left.items[i], right.items[i]));
    if (!same) {
      return false;
    }
  }
  return true;
}

Result<bool> equal_dicts(TemplateRuntime& runtime, const ValueDict& left, const ValueDict& right) {
  if (left.entries.size() != right.entries.size()) {
    return false;
  }
  for (const auto& [key, value] : left.entries) {
    TIDEKV_ASSIGN(const Value* other, find_key(runtime, right, key));
    if (other == nullptr) {
      return false;
    }
    TIDEKV_ASSIGN(const bool same, equals(runtime, value, *other));
    if (!same) {
      return false;
    }
  }
  return true;
}

Result<bool> less_list(TemplateRuntime& runtime, const ValueList& left, const ValueList& right) {
  const std::size_t common = std::min(left.items.size(), right.items.size());
  for (std::size_t i = 0; i < common; ++i) {
    TIDEKV_ASSIGN(const bool same, equals(runtime, left.items[i], right.items[i]));
    if (!same) {
      return is_less(runtime, left.items[i], right.items[i]);
    }
  }
  return left.items.size() < right.items.size();
}

bool is_hashable(const Value& value) {
  const ValueList* list = value.list();
  if (list == nullptr) {
    return value.dict() == nullptr;
  }
  return list->kind == ValueList::Kind::kTuple &&
         std::all_of(list->items.begin(), list->items.end(), is_hashable);
}

}  // namespace

Result<bool> equals(TemplateRuntime& runtime, const Value& left, const Value& right) {
  if (const auto* a = left.get<MarkedText>()) {
    const auto* b = right.get<MarkedText>();
    if (b == nullptr || a->bytes.size() != b->bytes.size()) {
      return false;
    }
    TIDEKV_TRY(runtime.step(a->bytes.size()));
    return a->bytes == b->bytes;
  }
  TIDEKV_TRY(runtime.step());
  if (is_number(left) && is_number(right)) {
    return compare_numbers(left, right) == 0;
  }
  if (left.data.index() != right.data.index()) {
    return false;
  }
  if (left.list() != nullptr) {
    return equal_lists(runtime, *left.list(), *right.list());
  }
  if (left.dict() != nullptr) {
    return equal_dicts(runtime, *left.dict(), *right.dict());
  }
  if (left.is<Undefined>() || left.is<NoneValue>()) {
    return true;
  }
  if (const auto* function = left.get<GlobalFunction>()) {
    return *function == *right.get<GlobalFunction>();
  }
  if (left.is<Namespace*>()) {
    return *left.get<Namespace*>() == *right.get<Namespace*>();
  }
  if (left.is<const Macro*>()) {
    return *left.get<const Macro*>() == *right.get<const Macro*>();
  }
  return *left.get<const LoopState*>() == *right.get<const LoopState*>();
}

Result<bool> is_less(TemplateRuntime& runtime, const Value& left, const Value& right) {
  TIDEKV_TRY(check_defined(runtime, left));
  TIDEKV_TRY(check_defined(runtime, right));
  TIDEKV_TRY(runtime.step());
  if (is_number(left) && is_number(right)) {
    return compare_numbers(left, right) < 0;
  }
  const auto* a = left.get<MarkedText>();
  const auto* b = right.get<MarkedText>();
  if (a != nullptr && b != nullptr) {  // UTF-8 sorts as its code points do
    TIDEKV_TRY(runtime.step(std::min(a->bytes.size(), b->bytes.size())));
    return a->bytes < b->bytes;
  }
  const ValueList* list = left.list();
  const ValueList* other = right.list();
  if (list != nullptr && other != nullptr && list->kind == other->kind &&
      (list->kind == ValueList::Kind::kList || list->kind == ValueList::Kind::kTuple)) {
    return less_list(runtime, *list, *other);
  }
  return runtime.error("cannot order " + std::string(type_name(left)) + " and " +
                       std::string(type_name(right)));
}

Result<bool> contains(TemplateRuntime& runtime, const Value& container, const Value& item) {
  if (const auto* text = container.get<MarkedText>()) {
    const auto* part = item.get<MarkedText>();
    if (part == nullptr) {
      return runtime.error("'in' a str takes a str on its left, not " +
                           std::string(type_name(item)));
    }
    TIDEKV_TRY(runtime.step(text->bytes.size() + part->bytes.size()));
    return find_text(text->bytes, part->bytes, 0) != std::string_view::npos;
  }
  if (const ValueDict* dict = container.dict()) {
    TIDEKV_ASSIGN(const Value* found, find_key(runtime, *dict, item));
    return found != nullptr;
  }
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(runtime, container));
  for (const Value& other : *items) {
    TIDEKV_ASSIGN(const bool same, equals(runtime, other, item));
    if (same) {
      return true;
    }
  }
  return false;
}

Result<const std::vector<Value>*> items_of(TemplateRuntime& runtime, const Value& value) {
  static const std::vector<Value> kNothing;
  if (value.is<Undefined>()) {
    return &kNothing;
  }
  if (ValueList* const* held = value.get<ValueList*>()) {
    ValueList& list = **held;
    TIDEKV_TRY(runtime.step());
    if (list.kind != ValueList::Kind::kIterator) {
      return &list.items;
    }
    const bool spent = list.spent;
    list.spent = true;
    return spent ? &kNothing : &list.items;
  }
  std::vector<Value> items;
  if (const ValueDict* dict = value.dict()) {
    for (const auto& [key, entry] : dict->entries) {
      items.push_back(key);
    }
  } else if (const auto* text = value.get<MarkedText>()) {
    for (std::size_t at = 0; at < text->bytes.size();) {
      TIDEKV_TRY(runtime.check_list_size(items.size() + 1));
      TIDEKV_TRY(runtime.step());
      const std::size_t length = first_character(text->bytes.substr(at)).length;
      items.push_back(Value{runtime.slice(*text, at, at + length)});
      at += length;
    }
  } else {
    return runtime.error("cannot loop over " + std::string(type_name(value)));
  }
  TIDEKV_ASSIGN(const Value made, runtime.list(std::move(items), ValueList::Kind::kList));
  return &made.list()->items;
}

Result<const Value*> find_key(TemplateRuntime& runtime, const ValueDict& dict, const Value& key) {
  if (!is_hashable(key)) {
    return runtime.error("a " + std::string(type_name(key)) + " cannot be a key");
  }
  for (const auto& [other, value] : dict.entries) {
    TIDEKV_ASSIGN(const bool same, equals(runtime, other, key));
    if (same) {
      return &value;
    }
  }
  return static_cast<const Value*>(nullptr);
}

Status put_entry(TemplateRuntime& runtime, std::vector<std::pair<Value, Value>>& entries, Value key,
                 Value value) {
  if (!is_hashable(key)) {
    return runtime.error("a " + std::string(type_name(key)) + " cannot be a key");
  }
  for (auto& [other, held] : entries) {
    TIDEKV_ASSIGN(const bool same, equals(runtime, other, key));
    if (same) {
      held = value;
      return Ok{};
    }
  }
  entries.emplace_back(key, value);
  return Ok{};
}

}  // namespace tidekv
