#include "device.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

#include "base/checked_math.h"

namespace tidekv::micro {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kLargestHeadDim = 256;

// Where a block has its scale and its minimum, two 16-bit floats; -1: it has no minimum.
struct ScalePlaces {
  std::int64_t scale = 0;
  std::int64_t minimum = -1;
};

ScalePlaces scale_places(DType dtype) {
  switch (dtype) {
    case DType::kQ41:
    case DType::kQ51:
    case DType::kQ4K:
    case DType::kQ5K:
      return {0, 2};
    case DType::kQ6K:
      return {208, -1};
    default:
      return {0, -1};
  }
}

void put_half(std::byte* block, std::int64_t at, std::uint16_t half) {
  if (at >= 0) {
    std::memcpy(block + at, &half, sizeof(half));
  }
}

// `num_blocks` blocks of any content, neither subnormal nor infinite.
std::vector<std::byte> make_pattern(DType dtype, std::int64_t num_blocks, std::mt19937& random) {
  const std::int64_t block = traits_of(dtype).block_bytes;
  std::vector<std::byte> bytes(static_cast<std::size_t>(num_blocks * block));
  for (std::int64_t i = 0; i < num_blocks; ++i) {
    std::byte* at = bytes.data() + i * block;
    const float number = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
    if (dtype == DType::kF32) {
      std::memcpy(at, &number, sizeof(number));
    } else if (dtype == DType::kBF16) {
      put_half(at, 0, float_to_bf16(number));
    } else if (dtype == DType::kF16) {
      put_half(at, 0, static_cast<std::uint16_t>(0x3000 + random() % 0x0C00));  // 0.125 to 1
    } else if (dtype == DType::kI32) {
      const auto id = static_cast<std::int32_t>(random() % 256);
      std::memcpy(at, &id, sizeof(id));
    } else {
      std::generate_n(at, block, [&] { return static_cast<std::byte>(random() & 0xFFU); });
      const ScalePlaces places = scale_places(dtype);
      put_half(at, places.scale, 0x1C00);  // 1/256
      put_half(at, places.minimum, 0x1C00);
    }
  }
  return bytes;
}

}  // namespace

Device::Device(const BackendEntry& entry, int num_threads, std::int64_t cold_bytes)
    : pool_(num_threads), backend_(entry.create({.pool = &pool_})), cold_bytes_(cold_bytes) {
  const std::int64_t floats = backend_->workspace_bytes(kLargestHeadDim) / size_of(DType::kF32);
  workspace_ = allocate(DType::kF32, 1, floats, 1);
  backend_->use_workspace(workspace_.at(0));
}

Tensors Device::allocate(DType dtype, std::int64_t rows, std::int64_t cols, std::int64_t count) {
  // A whole number of blocks apart, too, so that one pattern fills all.
  const std::int64_t bytes = rows * row_bytes(dtype, cols);
  const std::int64_t apart = round_up(bytes, kAlignment * traits_of(dtype).block_bytes);
  Result<Buffer> buffer = backend_->allocate({{Component::kActivations, apart * count}});
  if (!buffer.ok()) {
    throw std::bad_alloc();
  }
  Tensors tensors{std::move(buffer).value(), {}};
  for (std::int64_t i = 0; i < count; ++i) {
    tensors.views.push_back(tensors.buffer.view(dtype, rows, cols, i * apart));
  }
  return tensors;
}

Tensors Device::make(DType dtype, std::int64_t rows, std::int64_t cols, Copies copies) {
  const std::int64_t bytes = rows * row_bytes(dtype, cols);
  const std::int64_t count =
      copies == Copies::kOne ? 1 : std::max<std::int64_t>(2, ceil_div(cold_bytes_, bytes));
  Tensors tensors = allocate(dtype, rows, cols, count);
  constexpr std::int64_t kPatternBlocks = 4096;
  const DTypeTraits traits = traits_of(dtype);
  const std::vector<std::byte> pattern = make_pattern(dtype, kPatternBlocks, random_);
  // The buffer as rows of one pattern each, and what is left over.
  const std::int64_t num_blocks = tensors.buffer.num_bytes() / traits.block_bytes;
  const std::int64_t pattern_rows = num_blocks / kPatternBlocks;
  const DeviceView all =
      tensors.buffer.view(dtype, pattern_rows, kPatternBlocks * traits.block_len);
  for (std::int64_t row = 0; row < pattern_rows; ++row) {
    backend_->upload(pattern, all.rows_at(row, 1));
  }
  const std::int64_t rest = num_blocks - pattern_rows * kPatternBlocks;
  const std::span<const std::byte> part(pattern.data(),
                                        static_cast<std::size_t>(rest * traits.block_bytes));
  backend_->upload(part, tensors.buffer.view(dtype, 1, rest * traits.block_len, all.num_bytes()));
  return tensors;
}

Caches Device::make_caches(DType dtype, const CacheSize& size, Copies copies) {
  Caches caches;
  caches.keys = make(dtype, size.num_kv_heads * size.len, size.head_dim, copies);
  caches.values = make(dtype, size.num_kv_heads * size.len, size.head_dim, copies);
  for (std::int64_t head = 0; head < size.num_kv_heads; ++head) {
    caches.full.push_back({head * size.len, size.len, size.len});
    caches.empty.push_back({head * size.len, 0, size.len});
  }
  return caches;
}

Tensors Device::make_ids(const std::vector<std::int32_t>& ids, std::int64_t rows) {
  const auto count = static_cast<std::int64_t>(ids.size());
  Tensors tensors = allocate(DType::kI32, rows, count / rows, 1);
  backend_->upload(std::as_bytes(std::span(ids)), tensors.at(0));
  return tensors;
}

}  // namespace tidekv::micro
