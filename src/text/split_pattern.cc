#include "text/split_pattern.h"

#include <algorithm>
#include <array>

#include "text/pattern_syntax.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace tidekv {
namespace {

constexpr std::size_t kJitStackStartBytes = std::size_t{32} << 10U;
constexpr std::size_t kJitStackMaxBytes = std::size_t{16} << 20U;  // the default 32 KB is too small
constexpr std::uint32_t kHeapLimitKib = 64U << 10U;  // of the interpreter, where JIT is forbidden
constexpr std::uint32_t kParenthesesLimit = 64;

// Work units: callouts passed plus bytes run over. The patterns of real models take 1 to 7 for a
// byte of text, however odd the text.
constexpr std::uint64_t kWorkPerByte = 128;
constexpr std::uint64_t kBaseWork = std::uint64_t{1} << 20U;

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 160> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return {text.begin(), std::find(text.begin(), text.end(), PCRE2_UCHAR{0})};
}

}  // namespace

void MatchScratch::Release::operator()(pcre2_real_match_context_8* context) const {
  pcre2_match_context_free(context);
}
void MatchScratch::Release::operator()(pcre2_real_match_data_8* data) const {
  pcre2_match_data_free(data);
}
void MatchScratch::Release::operator()(pcre2_real_jit_stack_8* stack) const {
  pcre2_jit_stack_free(stack);
}
void SplitPattern::Release::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Result<MatchScratch> MatchScratch::create(std::size_t text_len) {
  MatchScratch scratch;
  scratch.jit_stack_.reset(pcre2_jit_stack_create(kJitStackStartBytes, kJitStackMaxBytes, nullptr));
  scratch.context_.reset(pcre2_match_context_create(nullptr));
  scratch.data_.reset(pcre2_match_data_create(1, nullptr));
  if (!scratch.context_ || !scratch.data_) {
    return Error{ErrorCode::kOutOfMemory, "no memory for matching the tokenizer's pattern"};
  }
  scratch.work_ = std::make_unique<Work>();
  scratch.work_->left = kBaseWork + kWorkPerByte * text_len;

  // No stack means no JIT was built in; the interpreter then takes its memory from the heap.
  if (scratch.jit_stack_) {
    pcre2_jit_stack_assign(scratch.context_.get(), nullptr, scratch.jit_stack_.get());
  }
  pcre2_set_heap_limit(scratch.context_.get(), kHeapLimitKib);
  const auto count_work = [](pcre2_callout_block* block, void* data) -> int {
    auto* work = static_cast<Work*>(data);
    const std::size_t position = block->current_position;
    const std::size_t moved = position > work->position ? position - work->position : 0;
    const std::uint64_t cost = 1 + block->callout_number + moved;
    work->position = position;
    if (cost > work->left) {
      return PCRE2_ERROR_CALLOUT;
    }
    work->left -= cost;
    return 0;
  };
  pcre2_set_callout(scratch.context_.get(), count_work, scratch.work_.get());
  return scratch;
}

Result<SplitPattern> SplitPattern::compile(std::string_view pattern, const std::string& field) {
  TIDEKV_ASSIGN(const std::string rewritten, pattern_for_pcre2(pattern, field));
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  if (!context) {
    return Error{ErrorCode::kOutOfMemory, "no memory for compiling the tokenizer's pattern"};
  }
  pcre2_set_parens_nest_limit(context.get(), kParenthesesLimit);

  int code = 0;
  PCRE2_SIZE offset = 0;
  SplitPattern result;
  result.field_ = field;
  result.code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rewritten.data()), rewritten.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &offset,
                                   context.get()));
  if (!result.code_) {
    return Error{ErrorCode::kUnsupported,
                 field + ": PCRE2 does not accept the pattern: " + pcre2_message(code) +
                     "; expected a valid regular expression"};
  }
  std::uint32_t can_be_empty = 0;
  pcre2_pattern_info(result.code_.get(), PCRE2_INFO_MATCHEMPTY, &can_be_empty);
  if (can_be_empty != 0) {
    return Error{ErrorCode::kUnsupported,
                 field +
                     ": the pattern can match the empty text; expected one that takes at least "
                     "one character"};
  }
  // Where JIT code is forbidden (no writable and executable memory), the interpreter does it.
  pcre2_jit_compile(result.code_.get(), PCRE2_JIT_COMPLETE);
  return result;
}

Result<std::optional<SplitPattern::Match>> SplitPattern::find(std::string_view text,
                                                              std::size_t from,
                                                              MatchScratch& scratch) const {
  scratch.work_->position = from;
  const int found = pcre2_match(code_.get(),
                                reinterpret_cast<PCRE2_SPTR>(text.data()),  // PCRE2's byte type
                                text.size(), from, PCRE2_NO_UTF_CHECK, scratch.data_.get(),
                                scratch.context_.get());
  if (found == PCRE2_ERROR_NOMATCH) {
    return std::optional<Match>{};
  }
  if (found < 0) {
    const std::string why = found == PCRE2_ERROR_CALLOUT ? "too much work" : pcre2_message(found);
    return Error{ErrorCode::kBadFile, field_ + ": matching the pattern failed at byte " +
                                          std::to_string(from) + " of a " +
                                          std::to_string(text.size()) + "-byte text: " + why +
                                          "; expected a pattern that takes linear time"};
  }
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(scratch.data_.get());
  if (ends[1] <= ends[0] || ends[0] < from) {
    return Error{ErrorCode::kUnsupported, field_ + ": the pattern matched an empty text"};
  }
  return std::optional<Match>(Match{ends[0], ends[1]});
}

}  // namespace tidekv
