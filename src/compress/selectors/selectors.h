// Factories of the selectors in this folder; the registry is their only caller.
#pragma once

#include <memory>

#include "compress/selector.h"

namespace tidekv {

std::unique_ptr<Selector> create_full_selector(const SelectorOptions& options);
std::unique_ptr<Selector> create_snapkv_selector(const SelectorOptions& options);

}  // namespace tidekv
