// Factories of the selectors in this folder; the registry is their only caller.
#pragma once

#include <memory>

#include "compress/selector.h"

namespace tidekv {

std::unique_ptr<Selector> create_adakv_selector(const SelectorOptions& options);
std::unique_ptr<Selector> create_chunkkv_selector(const SelectorOptions& options);
std::unique_ptr<Selector> create_expected_attention_selector(const SelectorOptions& options);
std::unique_ptr<Selector> create_full_selector(const SelectorOptions& options);
std::unique_ptr<Selector> create_key_difference_selector(const SelectorOptions& options);
std::unique_ptr<Selector> create_knorm_selector(const SelectorOptions& options);
std::unique_ptr<Selector> create_pyramidkv_selector(const SelectorOptions& options);
std::unique_ptr<Selector> create_recent_selector(const SelectorOptions& options);
std::unique_ptr<Selector> create_snapkv_selector(const SelectorOptions& options);
std::unique_ptr<Selector> create_tova_selector(const SelectorOptions& options);

// SnapKV's, on which others build.
ScoreRecipe snapkv_recipe(const SelectorOptions& options);

}  // namespace tidekv
