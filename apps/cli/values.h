// Values as they are typed on a command line. Strict: the whole text must be the value, no octal,
// no spaces, no silent rounding to a limit. An error says what would be right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tidekv/result.h"

namespace tidekv::cli {

struct IntegerRange {
  std::int64_t least = INT64_MIN;
  std::int64_t most = INT64_MAX;
};

struct RealRange {
  double least = 0;
  double most = 0;
};

// "128", "-1".
Result<std::int64_t> parse_integer(std::string_view text, IntegerRange range);

// Tokens: as above, or with a K or M: 16K is 16,384.
Result<std::int64_t> parse_tokens(std::string_view text, IntegerRange range);

// "0.95", "1e-3"; never nan or infinity.
Result<double> parse_real(std::string_view text, RealRange range);

// "8G", "1.5GiB", "512M", "2GB", "1048576". K, M, G, T and KiB .. TiB count in 1024s, kB .. TB in
// 1000s; the case of letters does not matter. A fraction of a byte is dropped.
Result<std::int64_t> parse_bytes(std::string_view text);

// Replaces \n \t \r \0 \\ \" \' and \xHH. An unknown or unfinished escape is an error.
Result<std::string> parse_escapes(std::string_view text);

}  // namespace tidekv::cli
