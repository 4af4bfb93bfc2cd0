#include "flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "text_layout.h"

namespace tidekv::cli {
namespace {

std::string help_text(const FlagText& flag, const std::string& shown_default) {
  return shown_default.empty() ? flag.help : fmt::format("{} ({})", flag.help, shown_default);
}

}  // namespace

void Flags::add(const FlagText& flag, const std::string& shown_default,
                std::function<Status(const std::string&)> parse) {
  const std::string names = flag.names;
  const auto callback = [names, parse = std::move(parse)](const std::string& text) {
    if (const Status status = parse(text); !status.ok()) {
      throw CLI::ValidationError(names.substr(0, names.find(',')), status.error().message);
    }
  };
  app_->add_option_function<std::string>(names, callback, help_text(flag, shown_default))
      ->take_last()
      ->type_name(flag.value)
      ->group(group_);
}

void Flags::on_off(const char* names, bool& target, const char* help) {
  app_->add_flag(names, target, help)->group(group_);
}

void Flags::text(const FlagText& flag, std::optional<std::string>& target) {
  add(flag, "", [&target](const std::string& text) -> Status {
    target = text;
    return Ok{};
  });
}

void Flags::integer(const FlagText& flag, std::int64_t& target, IntegerRange range) {
  add(flag, std::to_string(target), [&target, range](const std::string& text) -> Status {
    TIDEKV_ASSIGN(target, parse_integer(text, range));
    return Ok{};
  });
}

void Flags::integer(const FlagText& flag, int& target, IntegerRange range) {
  add(flag, std::to_string(target), [&target, range](const std::string& text) -> Status {
    TIDEKV_ASSIGN(const std::int64_t value, parse_integer(text, range));
    target = static_cast<int>(value);  // the range lies within int
    return Ok{};
  });
}

void Flags::tokens(const FlagText& flag, std::int64_t& target, IntegerRange range) {
  const std::string shown = target == kNotGiven ? "" : std::to_string(target);
  add(flag, shown, [&target, range](const std::string& text) -> Status {
    TIDEKV_ASSIGN(target, parse_tokens(text, range));
    return Ok{};
  });
}

void Flags::real(const FlagText& flag, float& target, RealRange range) {
  add(flag, fmt::format("{}", target), [&target, range](const std::string& text) -> Status {
    TIDEKV_ASSIGN(const double value, parse_real(text, range));
    target = static_cast<float>(value);
    return Ok{};
  });
}

void Flags::real(const FlagText& flag, double& target, RealRange range) {
  add(flag, fmt::format("{}", target), [&target, range](const std::string& text) -> Status {
    TIDEKV_ASSIGN(target, parse_real(text, range));
    return Ok{};
  });
}

void Flags::bytes(const FlagText& flag, std::int64_t& target) {
  add(flag, "", [&target](const std::string& text) -> Status {
    TIDEKV_ASSIGN(target, parse_bytes(text));
    return Ok{};
  });
}

void Flags::list(const FlagText& flag, std::vector<std::string>& target) {
  std::string shown;
  for (const std::string& item : target) {
    shown += (shown.empty() ? "" : ",") + item;
  }
  const auto callback = [&target](const std::vector<std::string>& items) { target = items; };
  app_->add_option_function<std::vector<std::string>>(flag.names, callback, help_text(flag, shown))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name(flag.value)
      ->group(group_);
}

void Flags::repeated(const FlagText& flag, const std::string& shown_default,
                     std::function<Status(const std::string&)> parse) {
  const std::string names = flag.names;
  const auto callback = [names, parse = std::move(parse)](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (const Status status = parse(text); !status.ok()) {
        throw CLI::ValidationError(names.substr(0, names.find(',')), status.error().message);
      }
    }
  };
  app_->add_option_function<std::vector<std::string>>(names, callback,
                                                      help_text(flag, shown_default))
      ->allow_extra_args(false)
      ->type_name(flag.value)
      ->group(group_);
}

Error Flags::not_among(const std::string& text, const std::vector<std::string>& names) {
  std::string listed;
  for (const std::string& name : names) {
    listed += (listed.empty() ? "" : ", ") + name;
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("'{}' is not one of {}", printable(text.substr(0, 60)), listed)};
}

}  // namespace tidekv::cli
