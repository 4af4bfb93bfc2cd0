// Flags that take lists, as llama-bench's do: commas, ranges, and given again to add more.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench_list.h"
#include "flags.h"
#include "text_layout.h"

namespace tidekv::cli {

// What was given replaces the default, and is given again to add to it.
template <typename Value>
struct List {
  std::vector<Value> values;
  bool given = false;

  void add(const std::vector<Value>& more) {
    if (!given) {
      values.clear();
    }
    given = true;
    values.insert(values.end(), more.begin(), more.end());
  }
};

using Numbers = List<std::int64_t>;

void add_numbers(Flags& flags, const FlagText& flag, Numbers& target, IntegerRange range);

// A list of words, each one of `choices`.
template <typename Value>
void add_words(Flags& flags, const FlagText& flag, const std::string& shown, List<Value>& target,
               const std::vector<std::pair<std::string, Value>>& choices) {
  flags.repeated(flag, shown, [&target, choices](const std::string& text) -> Status {
    std::vector<Value> values;
    for (const std::string_view word : split_at_commas(text)) {
      const auto found = std::find_if(choices.begin(), choices.end(),
                                      [&](const auto& choice) { return choice.first == word; });
      if (found == choices.end()) {
        std::string names;
        for (const auto& choice : choices) {
          names += (names.empty() ? "" : ", ") + choice.first;
        }
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("'{}' is not one of {}", printable(word.substr(0, 60)), names)};
      }
      values.push_back(found->second);
    }
    target.add(values);
    return Ok{};
  });
}

// --method: names of methods.
void add_methods(Flags& flags, List<std::string>& target);

}  // namespace tidekv::cli
