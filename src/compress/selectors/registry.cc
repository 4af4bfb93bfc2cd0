#include <array>

#include "compress/selectors/selectors.h"

namespace tidekv {
namespace {

constexpr std::array<SelectorEntry, 10> kSelectors = {{
    {"snapkv", "snap", create_snapkv_selector},
    {"pyramidkv", "pyramid", create_pyramidkv_selector},
    {"adakv", "ada", create_adakv_selector},
    {"chunkkv", "chunk", create_chunkkv_selector},
    {"recent", "recent", create_recent_selector, 4},
    {"tova", "tova", create_tova_selector},
    {"knorm", "knorm", create_knorm_selector},
    {"key-difference", "keydiff", create_key_difference_selector},
    {"expected-attention", "expected", create_expected_attention_selector, 4},
    {"full", "", create_full_selector},
}};

}  // namespace

std::span<const SelectorEntry> selector_entries() { return kSelectors; }

}  // namespace tidekv
