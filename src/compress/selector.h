// Which tokens stay: a selector's answer is a score recipe and a split of the budget over layers.
// No tensor in sight; the compressor carries the recipe out on any backend, under any schedule.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "backend/backend.h"
#include "tidekv/result.h"

namespace tidekv {

enum class ScoreSource : std::uint8_t {
  kNothing,            // only mandatory tokens stay, or, under a budget that covers the prompt, all
  kWindowAttention,    // attention of the last W queries, Eq. (7)
  kKeyNorm,            // minus the key's length; no pooling
  kKeyDifference,      // how little a key points where the mean of all keys does (KeyDiff)
  kExpectedAttention,  // of queries still to come, judged by those that passed; times the value's
                       // length. No pooling
};

// Whose way of splitting budgets. Those of other programs do not always add up to the budget. What
// a program is not named for here is split exactly.
enum class BudgetRule : std::uint8_t {
  kExact,
  // PyramidKV's line holds the window too; Ada-KV's even share is a floor, not a part; ChunkKV
  // keeps whole units.
  kKvpress,
  kKvcf,  // PyramidKV's line is in whole numbers, rounded down
};

struct ScoreRecipe {
  ScoreSource source = ScoreSource::kNothing;
  std::int64_t window_len = 0;  // W: the newest queries, where the source needs them
  std::int64_t num_sinks = 0;   // first tokens always retained
  std::int64_t num_recent = 0;  // last tokens always retained, and no candidates
  PoolRecipe pool;
  // Candidates in so long units, counted from the first, stay or go together; the one that the
  // budget cuts leaves its best tokens (ChunkKV).
  std::int64_t unit_len = 1;
  // Of a layer's budget, the share that KV heads get alike; the rest goes to the heads that have
  // the best candidates (Ada-KV).
  double even_share = 1;
  // The even share is what no head's candidates, sinks and recent tokens together may fall below;
  // instead of a part that each head gets beside what its candidates won.
  bool even_share_is_floor = false;

  std::int64_t num_mandatory() const { return num_sinks + num_recent; }
  // Whether every prompt row's query is looked at, but for those of sinks; not just the window's.
  bool observes_all() const { return source == ScoreSource::kExpectedAttention; }
};

// What the user chose; a selector takes what concerns it.
struct SelectorOptions {
  std::int64_t budget = 4096;  // tokens per layer and KV head, mandatory ones included
  std::int64_t window_len = 32;
  std::int64_t num_sinks = 0;
  PoolRecipe pool;
  std::int64_t unit_len = 10;   // tokens that ChunkKV keeps or drops together
  double even_share = 0.2;      // Ada-KV's alpha
  std::int64_t steepness = 20;  // PyramidKV's beta
  BudgetRule rule = BudgetRule::kExact;
};

class Selector {
 public:
  virtual ~Selector() = default;

  // For a prompt of so many tokens.
  virtual ScoreRecipe score_recipe(std::int64_t prompt_len) const = 0;

  // Fills budgets [num_layers] with tokens retained per KV head. Their sum is num_layers * budget
  // where the prompt is long enough; a budget >= prompt_len keeps everything.
  virtual void layer_budgets(std::int64_t prompt_len, std::span<std::int64_t> budgets) const = 0;
};

struct SelectorEntry {
  std::string_view name;        // the control's name: "snapkv"
  std::string_view short_name;  // of the delayed method: "tidekv-" + "snap"; empty: none
  std::unique_ptr<Selector> (*create)(const SelectorOptions& options);
  std::int64_t default_sinks = 0;  // where the user names no number
};

// Every selector. A new one is one file in selectors/ and one line in selectors/registry.cc.
std::span<const SelectorEntry> selector_entries();

// Refuses options under which a budget cannot hold: mandatory tokens beyond it, an even kernel.
// Every message names the flag.
Status check_selector_options(const SelectorEntry& selector, const SelectorOptions& options);

}  // namespace tidekv
