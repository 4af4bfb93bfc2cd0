// One pre-tokeniser pattern, compiled; finds its matches in valid UTF-8 text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tidekv/result.h"

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;
struct pcre2_real_jit_stack_8;

namespace tidekv {

// PCRE2's working memory for one call of encode(), and how much work that call may still do. Not
// shared between threads.
class MatchScratch {
 public:
  // `text_len` in bytes: the work allowed grows with it, so that even a hostile pattern takes time
  // linear in the text before it is stopped.
  static Result<MatchScratch> create(std::size_t text_len);

  MatchScratch(MatchScratch&&) noexcept = default;
  MatchScratch& operator=(MatchScratch&&) noexcept = default;
  ~MatchScratch() = default;

 private:
  friend class SplitPattern;
  struct Work {
    std::uint64_t left = 0;
    std::size_t position = 0;
  };
  struct Release {
    void operator()(pcre2_real_match_context_8* context) const;
    void operator()(pcre2_real_match_data_8* data) const;
    void operator()(pcre2_real_jit_stack_8* stack) const;
  };
  MatchScratch() = default;

  std::unique_ptr<pcre2_real_jit_stack_8, Release> jit_stack_;
  std::unique_ptr<pcre2_real_match_context_8, Release> context_;
  std::unique_ptr<pcre2_real_match_data_8, Release> data_;
  std::unique_ptr<Work> work_;
};

class SplitPattern {
 public:
  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;  // > begin
  };

  // `pattern` in Oniguruma's syntax (pattern_syntax.h); `field` names it in errors.
  static Result<SplitPattern> compile(std::string_view pattern, const std::string& field);

  SplitPattern(SplitPattern&&) noexcept = default;
  SplitPattern& operator=(SplitPattern&&) noexcept = default;
  ~SplitPattern() = default;

  // The first match in `text` (valid UTF-8) at or after `from`.
  Result<std::optional<Match>> find(std::string_view text, std::size_t from,
                                    MatchScratch& scratch) const;

 private:
  struct Release {
    void operator()(pcre2_real_code_8* code) const;
  };
  SplitPattern() = default;

  std::unique_ptr<pcre2_real_code_8, Release> code_;
  std::string field_;
};

}  // namespace tidekv
