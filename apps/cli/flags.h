// Flags of a command: each value is parsed strictly (values.h), the last one given wins, and an
// error names the flag and what would be right.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "values.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tidekv::cli {

// A number that a flag has not set yet and that is no default worth showing.
inline constexpr std::int64_t kNotGiven = INT64_MIN;

// A flag and what it does, for --help.
struct FlagText {
  const char* names;  // "-m,--model"
  const char* value;  // what stands for the value in --help: "PATH"
  const char* help;
};

class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(&app) {}

  // The heading in --help for the flags that follow; "" leaves them out of --help.
  void group(std::string name) { group_ = std::move(name); }

  void on_off(const char* names, bool& target, const char* help);
  void text(const FlagText& flag, std::optional<std::string>& target);
  void integer(const FlagText& flag, std::int64_t& target, IntegerRange range);
  void integer(const FlagText& flag, int& target, IntegerRange range);
  void tokens(const FlagText& flag, std::int64_t& target, IntegerRange range);
  void real(const FlagText& flag, float& target, RealRange range);
  void real(const FlagText& flag, double& target, RealRange range);
  void bytes(const FlagText& flag, std::int64_t& target);
  // May be given several times and as a comma list; replaces `target` as a whole.
  void list(const FlagText& flag, std::vector<std::string>& target);

  // May be given several times: `parse` gets each value in turn, after the whole line was read.
  void repeated(const FlagText& flag, const std::string& shown_default,
                std::function<Status(const std::string&)> parse);

  // One of the named values.
  template <typename Value>
  void choice(const FlagText& flag, Value& target,
              const std::vector<std::pair<std::string, Value>>& choices) {
    std::vector<std::string> names;
    std::string shown_default;
    for (const auto& [name, value] : choices) {
      names.push_back(name);
      shown_default = value == target ? name : shown_default;
    }
    add(flag, shown_default, [&target, choices, names](const std::string& text) -> Status {
      for (const auto& [name, value] : choices) {
        if (name == text) {
          target = value;
          return Ok{};
        }
      }
      return not_among(text, names);
    });
  }

  // Any parser. `shown_default` ends the flag's line in --help; "": none.
  void add(const FlagText& flag, const std::string& shown_default,
           std::function<Status(const std::string&)> parse);

 private:
  static Error not_among(const std::string& text, const std::vector<std::string>& names);

  CLI::App* app_;
  std::string group_ = "Options";
};

}  // namespace tidekv::cli
