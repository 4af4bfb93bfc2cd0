// From a block type known at run time to one the compiler knows.
//
// Internal linkage throughout (kernels.h says why): every instruction set has its own copy.
#pragma once

#include "backend/cpu/kernels.h"

namespace tidekv::cpu {
namespace {

template <BlockType kType>
struct BlockTag {};

// Calls body(BlockTag<type>{}).
template <typename Body>
inline void with_block_type(BlockType type, const Body& body) {
  switch (type) {
    case BlockType::kQ80:
      return body(BlockTag<BlockType::kQ80>{});
    case BlockType::kQ40:
      return body(BlockTag<BlockType::kQ40>{});
    case BlockType::kQ41:
      return body(BlockTag<BlockType::kQ41>{});
    case BlockType::kQ50:
      return body(BlockTag<BlockType::kQ50>{});
    case BlockType::kQ51:
      return body(BlockTag<BlockType::kQ51>{});
    case BlockType::kQ4K:
      return body(BlockTag<BlockType::kQ4K>{});
    case BlockType::kQ5K:
      return body(BlockTag<BlockType::kQ5K>{});
    case BlockType::kQ6K:
      return body(BlockTag<BlockType::kQ6K>{});
  }
}

}  // namespace
}  // namespace tidekv::cpu
