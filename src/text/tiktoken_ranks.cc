#include "text/tiktoken_ranks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/known_pre_tokenizers.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20U;
constexpr std::size_t kMaxTokenBytes = 512;
constexpr int kNumSpecialTokens = 256;

constexpr std::array<const char*, 12> kLlama3SpecialTokens = {
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|reserved_special_token_0|>",
    "<|reserved_special_token_1|>",
    "<|finetune_right_pad_id|>",
    "<|step_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|python_tag|>",
    "<|image|>",
};

int base64_digit(char c) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t at = kDigits.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

// Groups of four digits, three bytes each; the last may end in one or two '='.
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) {
    return std::nullopt;
  }
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  std::uint32_t bits = 0;
  unsigned num_bits = 0;
  for (const char c : text) {
    const int digit = base64_digit(c);
    if (digit < 0) {
      return std::nullopt;
    }
    bits = (bits << 6U | static_cast<std::uint32_t>(digit)) & 0xFFFU;
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      bytes += static_cast<char>(bits >> num_bits & 0xFFU);
    }
  }
  return bytes;
}

struct Line {
  std::string token;
  std::int32_t rank = -1;
};

std::optional<Line> read_line(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) {
    return std::nullopt;
  }
  auto token = decode_base64(text.substr(0, space));
  const std::string_view digits = text.substr(space + 1);
  Line line;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), line.rank);
  if (!token || error != std::errc{} || end != digits.data() + digits.size() || line.rank < 0) {
    return std::nullopt;
  }
  line.token = *std::move(token);
  return line;
}

// Up to the end of the line, without "\n" or "\r\n".
std::string_view first_line(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return line;
}

}  // namespace

bool is_tiktoken_ranks(std::string_view bytes) {
  return first_line(bytes).size() < 2 * kMaxTokenBytes && read_line(first_line(bytes)).has_value();
}

Result<TokenizerSpec> read_tiktoken_ranks(std::string_view bytes, const std::string& file) {
  if (bytes.size() > kMaxFileBytes) {
    return Error{ErrorCode::kBadFile, file + ": " + std::to_string(bytes.size()) +
                                          " bytes; expected at most " +
                                          std::to_string(kMaxFileBytes)};
  }
  TokenizerSpec spec;
  spec.merge_source = MergeSource::kRanks;
  spec.ignore_merges = true;
  spec.needs_all_bytes = true;
  spec.tokens_field = "ranks";
  std::string spelling;
  for (std::size_t number = 1; !bytes.empty(); ++number) {
    const auto bad = [&](std::string message) {
      message.insert(0, file + ": line " + std::to_string(number));
      return Error{ErrorCode::kBadFile, std::move(message)};
    };
    const std::string_view text = first_line(bytes);
    bytes.remove_prefix(std::min(bytes.size(), bytes.find('\n') == std::string_view::npos
                                                   ? bytes.size()
                                                   : bytes.find('\n') + 1));
    const std::optional<Line> line = read_line(text);
    if (!line) {
      return bad(" is " + quoted_text(text) + "; expected a token in base64, a space and its rank");
    }
    if (line->token.empty() || line->token.size() > kMaxTokenBytes) {
      return bad(": a token of " + std::to_string(line->token.size()) + " bytes; expected 1 to " +
                 std::to_string(kMaxTokenBytes));
    }
    spelling.clear();
    for (const char byte : line->token) {
      spelling += byte_spelling(static_cast<std::uint8_t>(byte));
    }
    spec.tokens.add(spelling);
    spec.token_ids.push_back(line->rank);
  }
  TIDEKV_ASSIGN(const KnownPreTokenizer known, find_pre_tokenizer("llama3", file));
  spec.pre_tokenizer = known.steps;
  return spec;
}

std::vector<AddedToken> llama3_special_tokens(std::int32_t first_id) {
  std::vector<AddedToken> tokens;
  for (int i = 0; i < kNumSpecialTokens; ++i) {
    const auto at = static_cast<std::size_t>(i);
    tokens.push_back({.id = first_id + i,
                      .content = at < kLlama3SpecialTokens.size()
                                     ? kLlama3SpecialTokens[at]
                                     : "<|reserved_special_token_" +
                                           std::to_string(at - kLlama3SpecialTokens.size() + 2) +
                                           "|>",
                      .special = true});
  }
  return tokens;
}

}  // namespace tidekv
