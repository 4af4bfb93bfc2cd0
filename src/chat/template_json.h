// The filter `tojson` as Transformers defines it: Python's json.dumps.
#pragma once

#include "chat/template_runtime.h"
#include "chat/template_value.h"
#include "tidekv/result.h"

namespace tidekv {

struct JsonStyle {
  bool ascii_only = false;
  bool sort_keys = false;
  bool indented = false;
  MarkedText indent = {};  // of one level
};

// Bytes from messages keep their marks.
Result<MarkedText> to_json(TemplateRuntime& runtime, const Value& value, const JsonStyle& style);

}  // namespace tidekv
