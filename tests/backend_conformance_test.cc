// Every operation of backend/backend.h against the oracle, on every backend of the registry that
// this machine can run. Here: movement and the operations on rows of activations. The rest is in
// conformance/: products, attention and its scores, selection, independence of neighbours and
// threads, memory.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "conformance/device.h"
#include "conformance/projected_heads.h"
#include "oracle/layer_ops.h"

namespace tidekv::conformance {
namespace {

constexpr DType kActivationTypes[] = {DType::kF32, DType::kBF16};
constexpr DType kWeightTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
// Lengths around the widths kernels work in.
constexpr std::int64_t kLengths[] = {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1000};

TEST(BackendRegistry, OffersABackendThatThisMachineCanRun) {
  EXPECT_FALSE(available_backends().empty());
}

class Movement : public BackendTest {};
TIDEKV_ON_EVERY_BACKEND(Movement);

TEST_P(Movement, DownloadReturnsTheBytesOfUpload) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kI32}) {
    HostTensor all(dtype, 13, 37);
    for (std::byte& byte : all.bytes()) {
      byte = static_cast<std::byte>(random_.below(256));
    }
    EXPECT_TRUE(same_bits(device_.get(device_.put(all).view), all));
  }
}

TEST_P(Movement, UploadWritesNothingBesideItsRows) {
  const HostTensor all = random_.normals(DType::kBF16, 9, 7);
  const DeviceTensor on_device = device_.put(all);
  HostTensor wanted = all;
  const HostTensor part = random_.normals(DType::kBF16, 2, 7);
  wanted.put_rows(3, part);
  backend().upload(part.bytes(), on_device.view.rows_at(3, 2));
  EXPECT_TRUE(same_bits(device_.get(on_device.view), wanted));
}

TEST_P(Movement, CopyMovesRowsBetweenBuffersBitForBit) {
  HostTensor all = random_.normals(DType::kF32, 300, 11);
  all.set(17, 3, std::numeric_limits<double>::quiet_NaN());
  const DeviceTensor from = device_.put(all);
  const DeviceTensor to = device_.garbage(DType::kF32, 300, 11);
  backend().copy(from.view.rows_at(5, 250), to.view.rows_at(50, 250));
  const HostTensor got = device_.get(to.view);
  EXPECT_TRUE(same_bits(got.rows_at(50, 250), all.rows_at(5, 250)));
  EXPECT_TRUE(std::isnan(got.at(49, 10)));
}

TEST_P(Movement, ImportedWeightsAreReadWhereverTheyLie) {
  // A file promises no alignment, so the weights start at an odd address.
  for (const DType dtype : kWeightTypes) {
    const HostTensor w = random_.normals(dtype, 19, 33);
    std::vector<std::byte> file(w.bytes().size() + 1);
    std::memcpy(file.data() + 1, w.bytes().data(), w.bytes().size());
    const auto imported = backend().import_weights({file.data() + 1, dtype, 19, 33});
    ASSERT_TRUE(imported.ok());
    const HostTensor a = random_.normals(DType::kF32, 5, 33);
    const DeviceTensor left = device_.put(a);
    const DeviceTensor out = device_.garbage(DType::kF32, 5, 19);
    backend().matmul(left.view, imported.value(), out.view, {});
    EXPECT_TRUE(same_bits(device_.get(out.view), device_.matmul(a, w, DType::kF32)));

    HostTensor ids(DType::kI32, 1, 2);
    ids.set(0, 0, 18);
    const DeviceTensor rows = device_.garbage(DType::kF32, 2, 33);
    backend().embed(imported.value(), device_.put(ids).view, rows.view);
    EXPECT_TRUE(same_bits(device_.get(rows.view), oracle::embed(w, ids, DType::kF32)));

    const DeviceTensor normed = device_.garbage(DType::kF32, 5, 33);
    backend().rms_norm(left.view, imported.value().rows_at(1, 1), 1e-5F, normed.view);
    EXPECT_TRUE(same_bits(device_.get(normed.view), device_.rms_norm(a, w.rows_at(1, 1), 1e-5F)));
  }
}

class Embed : public BackendTest {};
TIDEKV_ON_EVERY_BACKEND(Embed);

TEST_P(Embed, RowsAreTheTablesRoundedOnce) {
  for (const DType table_type : kWeightTypes) {
    for (const DType out_type : kActivationTypes) {
      const HostTensor table = random_.normals(table_type, 50, 1100, 3.0);
      HostTensor ids(DType::kI32, 1, 30);
      for (std::int64_t i = 0; i < ids.cols(); ++i) {
        ids.set(0, i, static_cast<double>(i == 0 ? 49 : random_.below(50)));
      }
      const DeviceTensor out = device_.garbage(out_type, 30, 1100);
      backend().embed(device_.put(table).view, device_.put(ids).view, out.view);
      EXPECT_TRUE(same_bits(device_.get(out.view), oracle::embed(table, ids, out_type)));
    }
  }
}

class RmsNorm : public BackendTest {};
TIDEKV_ON_EVERY_BACKEND(RmsNorm);

TEST_P(RmsNorm, IsWithinRoundingForAllTypesAndLengths) {
  for (const DType x_type : kActivationTypes) {
    for (const DType weight_type : kWeightTypes) {
      for (const std::int64_t len : kLengths) {
        const HostTensor x = random_.normals(x_type, 3, len, 2.0);
        const HostTensor weight = random_.normals(weight_type, 1, len);
        EXPECT_TRUE(within_bounds(device_.rms_norm(x, weight, 1e-5F),
                                  oracle::rms_norm(x, weight, static_cast<double>(1e-5F))))
            << name_of(x_type) << " x " << name_of(weight_type) << ", length " << len;
      }
    }
  }
}

TEST_P(RmsNorm, IsWithinRoundingWithOutliersZerosAndTinyValues) {
  for (const DType dtype : kActivationTypes) {
    HostTensor x = random_.normals(dtype, 4, 576);
    for (std::int64_t col = 0; col < x.cols(); ++col) {
      x.set(1, col, 0.0);
      x.set(2, col, 1e-12 * random_.normal());
    }
    x.set(0, 100, 1e4);
    x.set(3, 0, -6e4);
    const HostTensor weight = random_.normals(DType::kF32, 1, 576);
    EXPECT_TRUE(within_bounds(device_.rms_norm(x, weight, 1e-6F),
                              oracle::rms_norm(x, weight, static_cast<double>(1e-6F))));
  }
}

class RopeAngles : public BackendTest {};
TIDEKV_ON_EVERY_BACKEND(RopeAngles);

TEST_P(RopeAngles, AreThoseOfFloatProductsFarIntoAPrompt) {
  for (const std::int64_t head_dim : {2, 32, 64, 80, 128, 256}) {
    HostTensor inverse_freq(DType::kF32, 1, head_dim / 2);
    for (std::int64_t i = 0; i < head_dim / 2; ++i) {
      inverse_freq.set(
          0, i, std::pow(500000.0, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim)));
    }
    for (const std::int32_t first : {0, 1, 4095, 131000, 1000003}) {
      const DeviceTensor out = device_.garbage(DType::kF32, 9, head_dim);
      backend().rope_angles(device_.put(inverse_freq).view, Position{first}, out.view);
      EXPECT_TRUE(within_bounds(device_.get(out.view),
                                oracle::rope_angles(inverse_freq, Position{first}, 9)))
          << "head_dim " << head_dim << ", first position " << first;
    }
  }
}

class Rope : public BackendTest {};
TIDEKV_ON_EVERY_BACKEND(Rope);

TEST_P(Rope, RotatesEveryHeadWithinRounding) {
  for (const DType dtype : kActivationTypes) {
    for (const std::int64_t head_dim : {2, 32, 64, 80, 96, 128, 256}) {
      for (const std::int64_t heads : {1, 3}) {
        const HostTensor x = random_.normals(dtype, 5, heads * head_dim, 10.0);
        HostTensor angles(DType::kF32, 5, head_dim);
        for (std::int64_t row = 0; row < 5; ++row) {
          for (std::int64_t i = 0; i < head_dim / 2; ++i) {
            const double angle = random_.uniform(-3.2, 3.2);
            angles.set(row, i, std::cos(angle));
            angles.set(row, head_dim / 2 + i, std::sin(angle));
          }
        }
        for (const RopePairs pairs : {RopePairs::kHalves, RopePairs::kAdjacent}) {
          EXPECT_TRUE(
              within_bounds(rotated(device_, x, angles, pairs), oracle::rope(x, angles, pairs)))
              << name_of(dtype) << ", head_dim " << head_dim << ", heads " << heads
              << (pairs == RopePairs::kAdjacent ? ", adjacent" : "");
        }
      }
    }
  }
}

TEST_P(Rope, OfAdjacentPairsIsThatOfHalvesAfterMovingThePairs) {
  for (const DType dtype : kActivationTypes) {
    for (const std::int64_t head_dim : {2, 6, 64, 80, 256}) {
      const HostTensor halves = random_.normals(dtype, 300, 3 * head_dim);
      HostTensor adjacent(dtype, 300, 3 * head_dim);
      for (std::int64_t row = 0; row < halves.rows(); ++row) {
        for (std::int64_t head = 0; head < halves.cols(); head += head_dim) {
          for (std::int64_t i = 0; i < head_dim / 2; ++i) {
            adjacent.set(row, head + 2 * i, halves.at(row, head + i));
            adjacent.set(row, head + 2 * i + 1, halves.at(row, head + head_dim / 2 + i));
          }
        }
      }
      const HostTensor angles = random_.normals(DType::kF32, 300, head_dim);
      EXPECT_TRUE(same_bits(rotated(device_, adjacent, angles, RopePairs::kAdjacent),
                            rotated(device_, halves, angles, RopePairs::kHalves)))
          << name_of(dtype) << ", head_dim " << head_dim;
    }
  }
}

class SwiGlu : public BackendTest {};
TIDEKV_ON_EVERY_BACKEND(SwiGlu);

TEST_P(SwiGlu, IsWithinRoundingForAllLengths) {
  for (const DType dtype : kActivationTypes) {
    for (const std::int64_t len : kLengths) {
      const HostTensor gate = random_.normals(dtype, 2, len, 4.0);
      const HostTensor up = random_.normals(dtype, 2, len);
      EXPECT_TRUE(within_bounds(device_.swiglu(gate, up), oracle::swiglu(gate, up)))
          << name_of(dtype) << ", length " << len;
    }
  }
}

TEST_P(SwiGlu, IsWithinRoundingWhereTheExponentialSaturates) {
  for (const DType dtype : kActivationTypes) {
    HostTensor gate(dtype, 1, 400);
    for (std::int64_t i = 0; i < gate.cols(); ++i) {
      gate.set(0, i, static_cast<double>(i - 200));  // from -200 to 199, 0 among them
    }
    gate.set(0, 0, -30000.0);
    gate.set(0, 1, 30000.0);
    const HostTensor up = random_.normals(dtype, 1, 400);
    EXPECT_TRUE(within_bounds(device_.swiglu(gate, up), oracle::swiglu(gate, up)));
  }
}

TEST_P(SwiGlu, MayWriteOverItsGate) {
  const HostTensor gate = random_.normals(DType::kBF16, 7, 333);
  const HostTensor up = random_.normals(DType::kBF16, 7, 333);
  const DeviceTensor in_place = device_.put(gate);
  backend().swiglu(in_place.view, device_.put(up).view, in_place.view);
  EXPECT_TRUE(same_bits(device_.get(in_place.view), device_.swiglu(gate, up)));
}

class CacheRows : public BackendTest {};
TIDEKV_ON_EVERY_BACKEND(CacheRows);

// Slabs of NaN in which head h owns rows [offset, offset + capacity).
Kv ragged_cache(DType dtype, std::int64_t head_dim, std::vector<HeadSpan> heads) {
  const HeadSpan last = heads.back();
  Kv kv{HostTensor(dtype, last.offset + last.capacity + 3, head_dim), {}, std::move(heads)};
  kv.keys.fill(std::numeric_limits<double>::quiet_NaN());
  kv.values = kv.keys;
  return kv;
}

TEST_P(CacheRows, GatherCopiesTheNamedRowsOfEachHeadBehindItsLength) {
  for (const DType dtype : kActivationTypes) {
    for (const std::int64_t head_dim : {2, 64, 96}) {
      Kv from = ragged_cache(dtype, head_dim, {{2, 50, 50}, {60, 90, 95}});
      from.keys = random_.normals(dtype, from.keys.rows(), head_dim);
      from.values = random_.normals(dtype, from.values.rows(), head_dim);
      Kv wanted = ragged_cache(dtype, head_dim, {{0, 0, 20}, {25, 4, 30}});
      const DeviceKv to = device_.put(wanted);
      const std::vector<std::int64_t> lens = {17, 9};  // of lengths of their own
      HostTensor slots(DType::kI32, 1, 17 + 9);
      std::int64_t entry = 0;
      for (std::size_t head = 0; head < 2; ++head) {
        const HeadSpan& source = from.heads[head];
        const HeadSpan& target = wanted.heads[head];
        for (std::int64_t i = 0; i < lens[head]; ++i) {
          const std::int64_t slot = i == 0 ? source.len - 1 : random_.below(source.len);
          slots.set(0, entry++, static_cast<double>(slot));
          const std::int64_t at = target.offset + target.len + i;
          wanted.keys.put_rows(at, from.keys.rows_at(source.offset + slot, 1));
          wanted.values.put_rows(at, from.values.rows_at(source.offset + slot, 1));
        }
      }
      const DeviceKv source = device_.put(from);
      const DeviceTensor picked = device_.put(slots);
      backend().gather_rows(source.view(), {picked.view, lens}, to.view());
      EXPECT_TRUE(same_bits(device_.get(to.keys.view), wanted.keys));
      EXPECT_TRUE(same_bits(device_.get(to.values.view), wanted.values));
    }
  }
}

TEST_P(CacheRows, KeepMovesTheNamedRowsToTheFrontOfTheirHead) {
  for (const DType dtype : kActivationTypes) {
    Kv before = ragged_cache(dtype, 80, {{1, 200, 205}, {210, 90, 90}, {305, 7, 9}});
    before.keys = random_.normals(dtype, before.keys.rows(), 80);
    before.values = random_.normals(dtype, before.values.rows(), 80);
    Kv wanted = before;
    const std::vector<std::int64_t> lens = {120, 90, 0};
    HostTensor slots(DType::kI32, 1, 120 + 90);
    std::int64_t entry = 0;
    for (std::size_t head = 0; head < 3; ++head) {
      std::int64_t slot = 0;
      const HeadSpan& span = before.heads[head];
      for (std::int64_t row = 0; row < lens[head]; ++row, ++slot) {
        const std::int64_t spare = (span.len - slot) - (lens[head] - row);  // slots to leave out
        slot += spare > 0 ? random_.below(std::min<std::int64_t>(spare, 3) + 1) : 0;
        slots.set(0, entry++, static_cast<double>(slot));
        wanted.keys.put_rows(span.offset + row, before.keys.rows_at(span.offset + slot, 1));
        wanted.values.put_rows(span.offset + row, before.values.rows_at(span.offset + slot, 1));
      }
    }
    const DeviceKv cache = device_.put(before);
    const DeviceTensor picked = device_.put(slots);
    backend().keep_rows({picked.view, lens}, cache.view());
    EXPECT_TRUE(same_bits(device_.get(cache.keys.view), wanted.keys));
    EXPECT_TRUE(same_bits(device_.get(cache.values.view), wanted.values));
  }
}

TEST_P(CacheRows, SlotsBecomeThePositionsOfCachedRowsAndOfThoseBehindThem) {
  const std::vector<std::int64_t> cached_lens = {4, 2};
  HostTensor cached(DType::kI32, 1, 6);
  const std::vector<double> positions = {0, 3, 17, 40, 5, 41};
  for (std::size_t i = 0; i < positions.size(); ++i) {
    cached.set(0, static_cast<std::int64_t>(i), positions[i]);
  }
  const std::vector<std::int64_t> lens = {3, 5};
  const std::vector<double> picked = {1, 3, 9, 0, 1, 2, 3, 4};
  const std::vector<double> wanted = {3, 40, 55, 5, 41, 50, 51, 52};
  HostTensor slots(DType::kI32, 1, 8);
  HostTensor expected(DType::kI32, 1, 8);
  for (std::size_t i = 0; i < picked.size(); ++i) {
    slots.set(0, static_cast<std::int64_t>(i), picked[i]);
    expected.set(0, static_cast<std::int64_t>(i), wanted[i]);
  }
  const DeviceTensor known = device_.put(cached);
  const DeviceTensor entries = device_.put(slots);
  backend().slots_to_positions({known.view, cached_lens}, Position{50}, {entries.view, lens});
  EXPECT_TRUE(same_bits(device_.get(entries.view), expected));
}

}  // namespace
}  // namespace tidekv::conformance
