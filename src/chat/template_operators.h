// Operators on template values, with Python's meaning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/template_runtime.h"
#include "chat/template_value.h"
#include "tidekv/result.h"

namespace tidekv {

// + - * / // % **
Result<Value> binary_operation(TemplateRuntime& runtime, std::string_view operation,
                               const Value& left, const Value& right);
Result<Value> negative(TemplateRuntime& runtime, const Value& value);

Result<bool> equals(TemplateRuntime& runtime, const Value& left, const Value& right);
// left < right
Result<bool> is_less(TemplateRuntime& runtime, const Value& left, const Value& right);
// item in container
Result<bool> contains(TemplateRuntime& runtime, const Value& container, const Value& item);

// Python's str(): an error for what has no plain text, such as a list.
Result<MarkedText> to_text(TemplateRuntime& runtime, const Value& value);
// What Python's repr() shows of a float.
std::string float_text(double number);

// What a loop over `value` sees. Passing over an iterator spends it.
Result<const std::vector<Value>*> items_of(TemplateRuntime& runtime, const Value& value);

// left + right; markup where Python's MarkupSafe would escape is an error.
Result<MarkedText> joined(TemplateRuntime& runtime, const MarkedText& left,
                          const MarkedText& right);

// The value of `key`, which must be hashable; nothing: no such key.
Result<const Value*> find_key(TemplateRuntime& runtime, const ValueDict& dict, const Value& key);
Status put_entry(TemplateRuntime& runtime, std::vector<std::pair<Value, Value>>& entries, Value key,
                 Value value);

// Any use of an undefined value beyond printing and testing it.
Error undefined_error(const TemplateRuntime& runtime, const Undefined& undefined);
// An error if `value` is undefined.
Status check_defined(const TemplateRuntime& runtime, const Value& value);

}  // namespace tidekv
