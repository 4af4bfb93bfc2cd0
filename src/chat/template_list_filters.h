// Jinja's filters that look at the items of a list.
#pragma once

#include "chat/template_builtins.h"
#include "chat/template_value.h"
#include "tidekv/result.h"

namespace tidekv {

Result<Value> first_item(BuiltinCall& call);
Result<Value> last_item(BuiltinCall& call);
Result<Value> as_list(BuiltinCall& call);
Result<Value> dict_pairs(BuiltinCall& call);
Result<Value> reversed_items(BuiltinCall& call);
Result<Value> map_items(BuiltinCall& call);
Result<Value> select_items(BuiltinCall& call);
Result<Value> reject_items(BuiltinCall& call);
Result<Value> select_by_attribute(BuiltinCall& call);
Result<Value> reject_by_attribute(BuiltinCall& call);
Result<Value> unique_items(BuiltinCall& call);
Result<Value> sorted_items(BuiltinCall& call);
Result<Value> sorted_dict(BuiltinCall& call);
Result<Value> smallest(BuiltinCall& call);
Result<Value> largest(BuiltinCall& call);
Result<Value> sum_of_items(BuiltinCall& call);

// The items of `list`, each replaced by its attribute `path`: names or numbers, dots between them.
Result<Value> with_attribute(TemplateRuntime& runtime, const Value& list, const Value& path);

}  // namespace tidekv
