#include "list_flags.h"

#include "tidekv/engine.h"

namespace tidekv::cli {

void add_numbers(Flags& flags, const FlagText& flag, Numbers& target, IntegerRange range) {
  const std::string shown =
      target.values.empty() ? "" : fmt::format("{}", fmt::join(target.values, ","));
  flags.repeated(flag, shown, [&target, range](const std::string& text) -> Status {
    TIDEKV_ASSIGN(const std::vector<std::int64_t> numbers, parse_number_list(text, range));
    target.add(numbers);
    return Ok{};
  });
}

void add_methods(Flags& flags, List<std::string>& target) {
  std::vector<std::pair<std::string, std::string>> methods;
  for (const std::string& name : method_names()) {
    methods.emplace_back(name, name);
  }
  const std::string help = fmt::format("what is kept: {}", fmt::join(method_names(), ", "));
  const std::string shown = fmt::format("{}", fmt::join(target.values, ","));
  add_words(flags, {"--method", "LIST", help.c_str()}, shown, target, methods);
}

}  // namespace tidekv::cli
