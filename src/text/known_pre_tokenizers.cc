#include "text/known_pre_tokenizers.h"

#include <array>

#include "text/utf8.h"

namespace tidekv {
namespace {

constexpr const char* kDigitPattern = "\\p{N}";
constexpr const char* kLlama3Pattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kQwen2Pattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kTekkenPattern =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
    "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

struct Entry {
  std::string_view name;
  std::array<const char*, 2> patterns;  // one after the other; null: none
  bool ignore_merges = false;
  bool compose = false;
  bool add_bos = false;
};

constexpr std::array kEntries = {
    Entry{"gpt-2", {kGpt2Pattern, nullptr}},
    Entry{"smollm", {kDigitPattern, kGpt2Pattern}},
    Entry{"llama-bpe", {kLlama3Pattern, nullptr}, true, false, true},
    Entry{"llama3", {kLlama3Pattern, nullptr}, true, false, true},
    Entry{"llama-v3", {kLlama3Pattern, nullptr}, true, false, true},
    Entry{"qwen2", {kQwen2Pattern, nullptr}, false, true, false},
    Entry{"deepseek-r1-qwen", {kQwen2Pattern, nullptr}},
    Entry{"tekken", {kTekkenPattern, nullptr}, true, false, true},
};

}  // namespace

Result<KnownPreTokenizer> find_pre_tokenizer(std::string_view name, const std::string& field) {
  std::string names;
  for (const Entry& entry : kEntries) {
    if (entry.name == name) {
      KnownPreTokenizer found{{}, entry.ignore_merges, entry.compose, entry.add_bos};
      for (const char* pattern : entry.patterns) {
        if (pattern != nullptr) {
          found.steps.push_back({.pattern = pattern, .field = field});
        }
      }
      return found;
    }
    names.append(names.empty() ? "" : ", ").append(entry.name);
  }
  return Error{ErrorCode::kUnsupported, field + " is " +
                                            (name.empty() ? "missing" : quoted_text(name)) +
                                            "; expected one of " + names};
}

}  // namespace tidekv
