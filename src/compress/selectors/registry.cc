#include <array>

#include "compress/selectors/selectors.h"

namespace tidekv {
namespace {

constexpr std::array<SelectorEntry, 2> kSelectors = {{
    {"snapkv", "snap", create_snapkv_selector},
    {"full", "", create_full_selector},
}};

}  // namespace

std::span<const SelectorEntry> selector_entries() { return kSelectors; }

}  // namespace tidekv
