// Keys and values in few bits: quantise_rows against KIVI's formula, attend_quantised against the
// oracle, and the cache that puts both together.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "cache/quantised_kv.h"
#include "conformance/device.h"
#include "oracle/attention_ops.h"
#include "oracle/quantiser.h"

namespace tidekv::conformance {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16};
constexpr std::int64_t kBits[] = {2, 4};
constexpr GroupAxis kAxes[] = {GroupAxis::kTokens, GroupAxis::kChannels};

struct DeviceCodes {
  DeviceTensor codes;
  DeviceTensor scales;
  DeviceTensor minima;
  QuantisedRows rows;
};

// Codes of a matrix, on the host.
struct HostCodes {
  std::vector<std::vector<std::int64_t>> codes;
  HostTensor scales;
  HostTensor minima;
  QuantisedRows shape;

  oracle::Group group(std::int64_t row, std::int64_t col) const {
    const std::int64_t scale_row = shape.scale_row(row);
    const std::int64_t scale_col = shape.axis == GroupAxis::kTokens ? col : col / shape.group_len;
    return {scales.at(scale_row, scale_col), minima.at(scale_row, scale_col)};
  }
  // As the interface has it: the product and the sum each rounded to f32.
  float value(std::int64_t row, std::int64_t col) const {
    const oracle::Group of = group(row, col);
    const auto code =
        static_cast<float>(codes[static_cast<std::size_t>(row)][static_cast<std::size_t>(col)]);
    const float product = code * static_cast<float>(of.scale);
    return product + static_cast<float>(of.minimum);
  }
};

class Kivi : public BackendTest {
 protected:
  struct Recipe {
    std::int64_t bits = 2;
    std::int64_t group_len = 32;
    GroupAxis axis = GroupAxis::kChannels;
  };

  DeviceCodes room_for(const HostTensor& x, const Recipe& recipe) {
    const bool by_token = recipe.axis == GroupAxis::kTokens;
    const std::int64_t rows = by_token ? x.rows() / recipe.group_len : x.rows();
    const std::int64_t cols = by_token ? x.cols() : x.cols() / recipe.group_len;
    DeviceCodes made;
    made.codes =
        device_.garbage(DType::kI32, x.rows(), QuantisedRows::code_words(x.cols(), recipe.bits));
    made.scales = device_.garbage(x.dtype(), rows, cols);
    made.minima = device_.garbage(x.dtype(), rows, cols);
    made.rows = {made.codes.view, made.scales.view, made.minima.view,
                 recipe.bits,     recipe.group_len, recipe.axis};
    return made;
  }

  DeviceCodes quantised(const HostTensor& x, const Recipe& recipe) {
    DeviceCodes made = room_for(x, recipe);
    if (x.rows() > 0) {
      backend().quantise_rows(device_.put(x).view, made.rows);
    }
    return made;
  }

  HostCodes get(const QuantisedRows& rows) {
    return {oracle::unpacked(device_.get(rows.codes), rows.head_dim(), rows.bits),
            device_.get(rows.scales), device_.get(rows.minima), rows};
  }

  // The elements of a row's one group, along either axis.
  HostTensor one_group(DType dtype, const std::vector<double>& elements, GroupAxis axis) {
    const auto count = static_cast<std::int64_t>(elements.size());
    const bool by_token = axis == GroupAxis::kTokens;
    HostTensor x(dtype, by_token ? count : 1, by_token ? 1 : count);
    for (std::int64_t i = 0; i < count; ++i) {
      x.set(by_token ? i : 0, by_token ? 0 : i, elements[static_cast<std::size_t>(i)]);
    }
    return x;
  }

  void expect_codes(const std::vector<double>& elements, std::int64_t bits,
                    const std::vector<std::int64_t>& wanted) {
    for (const DType dtype : kTypes) {
      for (const GroupAxis axis : kAxes) {
        const HostTensor x = one_group(dtype, elements, axis);
        const DeviceCodes made =
            quantised(x, {bits, static_cast<std::int64_t>(elements.size()), axis});
        const HostCodes got = get(made.rows);
        std::vector<std::int64_t> codes;
        for (const auto& row : got.codes) {
          codes.insert(codes.end(), row.begin(), row.end());
        }
        EXPECT_EQ(codes, wanted);
        const oracle::Group group = oracle::group_of(x.values(), bits, dtype);
        EXPECT_EQ(got.scales.at(0, 0), group.scale);
        EXPECT_EQ(got.minima.at(0, 0), group.minimum);
      }
    }
  }
};
TIDEKV_ON_EVERY_BACKEND(Kivi);

TEST_P(Kivi, RoundsHalfToEven) {
  expect_codes({-1, 0, 0.5, 2}, 2, {0, 1, 2, 3});  // 0.5 stands 1.5 steps above -1
  expect_codes({0, 0.5, 2.5, 3}, 2, {0, 0, 2, 3});
}

TEST_P(Kivi, SpreadsSixteenCodesOverTheRange) {
  expect_codes({0, 1, 2, 3, 4, 5, 6, 7}, 4, {0, 2, 4, 6, 9, 11, 13, 15});
}

TEST_P(Kivi, GivesEqualElementsTheCodeZeroAndTheirValue) {
  expect_codes({3.5, 3.5, 3.5, 3.5}, 2, {0, 0, 0, 0});
  expect_codes({-0.25, -0.25}, 4, {0, 0});
}

TEST_P(Kivi, PacksTheLowestBitsFirst) {
  HostTensor x(DType::kF32, 1, 20);  // a word of 16 codes and 4 more
  for (std::int64_t i = 0; i < 20; ++i) {
    x.set(0, i, static_cast<double>(i % 4));
  }
  const DeviceCodes made = quantised(x, {2, 20, GroupAxis::kChannels});
  const HostTensor words = device_.get(made.codes.view);
  ASSERT_EQ(words.cols(), 2);
  EXPECT_EQ(words.at(0, 0), static_cast<double>(static_cast<std::int32_t>(0xE4E4E4E4U)));
  EXPECT_EQ(words.at(0, 1), static_cast<double>(0xE4));  // and zeros to the word's end
}

// Every code the nearest to its element, but for elements within rounding of the middle of two.
TEST_P(Kivi, CodesAreTheNearestForAllShapes) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t bits : kBits) {
      for (const GroupAxis axis : kAxes) {
        for (const auto& [dim, group_len] : {std::pair<std::int64_t, std::int64_t>{64, 32},
                                             {128, 64},
                                             {10, 2},
                                             {90, 30},
                                             {256, 32},
                                             {8, 8}}) {
          const std::int64_t rows = axis == GroupAxis::kTokens ? 3 * group_len : 37;
          const HostTensor x = random_.normals(dtype, rows, dim, 3.0);
          const HostCodes got = get(quantised(x, {bits, group_len, axis}).rows);
          for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t col = 0; col < dim; ++col) {
              const double steps = oracle::steps_of(x.at(row, col), got.group(row, col));
              const auto code = static_cast<double>(
                  got.codes[static_cast<std::size_t>(row)][static_cast<std::size_t>(col)]);
              // A difference and a quotient in f32; a stored scale may be short of the range.
              const double clamped = std::min(steps, static_cast<double>((1 << bits) - 1));
              ASSERT_LE(std::abs(code - clamped), 0.5 + 16 * 0x1p-22)
                  << name_of(dtype) << ", " << bits << " bits, row " << row << ", col " << col;
            }
          }
        }
      }
    }
  }
}

TEST_P(Kivi, ScalesAreThoseOfTheirGroups) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t bits : kBits) {
      const HostTensor x = random_.normals(dtype, 64, 96);
      const HostCodes keys = get(quantised(x, {bits, 32, GroupAxis::kTokens}).rows);
      const HostCodes values = get(quantised(x, {bits, 32, GroupAxis::kChannels}).rows);
      for (std::int64_t row = 0; row < 64; ++row) {
        for (std::int64_t col = 0; col < 96; ++col) {
          std::vector<double> along_tokens;
          std::vector<double> along_channels;
          for (std::int64_t i = 0; i < 32; ++i) {
            along_tokens.push_back(x.at(row / 32 * 32 + i, col));
            along_channels.push_back(x.at(row, col / 32 * 32 + i));
          }
          const oracle::Group key = oracle::group_of(along_tokens, bits, dtype);
          const oracle::Group value = oracle::group_of(along_channels, bits, dtype);
          ASSERT_EQ(keys.group(row, col).scale, key.scale);
          ASSERT_EQ(keys.group(row, col).minimum, key.minimum);
          ASSERT_EQ(values.group(row, col).scale, value.scale);
          ASSERT_EQ(values.group(row, col).minimum, value.minimum);
        }
      }
    }
  }
}

// What no model should have, and no cache may choke on.
TEST_P(Kivi, GivesACodeToEveryNumberThereIs) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const GroupAxis axis : kAxes) {
    for (const std::vector<double>& elements : {std::vector<double>{nan, 1, 2, 3},
                                                {nan, nan, nan, nan},
                                                {infinity, 0, 1, 2},
                                                {-infinity, infinity, 0, nan},
                                                {3e38, -3e38, 0, 1}}) {
      const HostTensor x = one_group(DType::kF32, elements, axis);
      for (const auto& row : get(quantised(x, {2, 4, axis}).rows).codes) {
        for (const std::int64_t code : row) {
          EXPECT_TRUE(code >= 0 && code <= 3);
        }
      }
    }
  }
}

// --- the cache: quantised tokens, then rows ---

struct CacheSetup {
  CacheShape shape;
  std::vector<HeadSpan> spans;

  CacheSetup(DType dtype, std::int64_t bits, std::int64_t head_dim, std::int64_t group_len,
             std::int64_t residual_len)
      : shape{.num_layers = 1,
              .num_kv_heads = 2,
              .head_dim = head_dim,
              .dtype = dtype,
              .quantiser = {bits, group_len, residual_len}},
        spans(2) {}
};

class KiviCache : public Kivi {
 protected:
  // A cache that has taken `prompt` of the tokens at once and the others one by one.
  QuantisedKv filled(CacheSetup& setup, const Kv& all, std::int64_t prompt) {
    const std::int64_t len = all.heads.front().len;
    setup.shape.prompt_len = prompt;
    setup.shape.growth_len = len - prompt;
    Result<QuantisedKv> made = QuantisedKv::allocate(backend(), setup.shape, setup.spans);
    EXPECT_TRUE(made.ok());
    QuantisedKv cache = std::move(made).value();
    cache.fill(backend(), device_.put(without_newest(all, len - prompt)).view());
    for (std::int64_t token = prompt; token < len; ++token) {
      append(cache, all, token);
      cache.settle(backend());
    }
    return cache;
  }

  void append(QuantisedKv& cache, const Kv& all, std::int64_t token) {
    const KvView room = cache.room(1);
    for (std::size_t head = 0; head < all.heads.size(); ++head) {
      const std::int64_t from = all.heads[head].offset + token;
      const std::int64_t to = room.heads[head].offset + room.heads[head].len;
      backend().upload(all.keys.rows_at(from, 1).bytes(), room.keys.rows_at(to, 1));
      backend().upload(all.values.rows_at(from, 1).bytes(), room.values.rows_at(to, 1));
    }
    cache.advance(1);
  }

  std::vector<std::byte> bytes_of(const QuantisedKv& cache) {
    std::vector<std::byte> bytes;
    cache.for_each_view([&](DeviceView view) {
      const HostTensor part = device_.get(view);
      bytes.insert(bytes.end(), part.bytes().begin(), part.bytes().end());
    });
    return bytes;
  }

  // What the codes and rows stand for, token by token; f32, in which every value is exact.
  Kv expanded(const QuantisedKvView& view) {
    const std::int64_t dim = view.head_dim();
    Kv kv{HostTensor(DType::kF32, view.num_kv_heads * view.num_tokens, dim),
          HostTensor(DType::kF32, view.num_kv_heads * view.num_tokens, dim),
          {}};
    const auto expand = [&](const QuantisedRows& rows, DeviceView recent, std::int64_t coded,
                            std::int64_t first_recent, HostTensor& to) {
      const HostCodes codes = get(rows);
      const HostTensor newest = device_.get(recent);
      const std::int64_t held = recent.rows() / view.num_kv_heads;
      for (std::int64_t head = 0; head < view.num_kv_heads; ++head) {
        for (std::int64_t token = 0; token < view.num_tokens; ++token) {
          for (std::int64_t col = 0; col < dim; ++col) {
            const std::int64_t row = head * (rows.num_rows() / view.num_kv_heads) + token;
            to.set(head * view.num_tokens + token, col,
                   token < coded ? static_cast<double>(codes.value(row, col))
                                 : newest.at(head * held + (token - first_recent) % held, col));
          }
        }
      }
    };
    expand(view.keys, view.recent_keys, view.num_quantised_keys, view.num_quantised_keys, kv.keys);
    expand(view.values, view.recent_values, view.num_quantised_values, 0, kv.values);
    for (std::int64_t head = 0; head < view.num_kv_heads; ++head) {
      kv.heads.push_back({head * view.num_tokens, view.num_tokens, view.num_tokens});
    }
    return kv;
  }

  HostTensor attend(const HostTensor& q, const QuantisedKvView& view) {
    const DeviceTensor in_place = device_.put(q);
    backend().attend_quantised(in_place.view, view);
    return device_.get(in_place.view);
  }
};
TIDEKV_ON_EVERY_BACKEND(KiviCache);

TEST_P(KiviCache, AttentionIsWithinRoundingOfWhatTheCodesStandFor) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t bits : kBits) {
      for (const auto& [dim, group_len, residual] :
           {std::tuple<std::int64_t, std::int64_t, std::int64_t>{64, 32, 128},
            {32, 16, 16},
            {90, 10, 20},
            {10, 2, 4},
            {256, 32, 32},
            {128, 128, 128}}) {
        for (const std::int64_t len : {1, 40, 300, 700}) {
          const std::int64_t group = len == 40 ? 1 : 3;
          const AttentionCase made =
              attention_case(random_, dtype, {2, group, dim}, {len, len}, 1, Inputs::kPlain);
          CacheSetup setup(dtype, bits, dim, group_len, residual);
          const QuantisedKv cache = filled(setup, made.kv, len);
          device_.poison_workspace();
          EXPECT_TRUE(within_bounds(attend(made.q, cache.view()),
                                    oracle::attend(made.q, expanded(cache.view()))))
              << name_of(dtype) << ", " << bits << " bits, head_dim " << dim << ", length " << len;
        }
      }
    }
  }
}

TEST_P(KiviCache, AttentionIsWithinRoundingForHardInputs) {
  for (const DType dtype : kTypes) {
    for (const Inputs inputs : kAllInputs) {
      const AttentionCase made = attention_case(random_, dtype, {2, 2, 64}, {530, 530}, 1, inputs);
      CacheSetup setup(dtype, 4, 64, 32, 64);
      const QuantisedKv cache = filled(setup, made.kv, 500);
      EXPECT_TRUE(within_bounds(attend(made.q, cache.view()),
                                oracle::attend(made.q, expanded(cache.view()))));
    }
  }
}

// Nothing is a code yet: bit for bit what a cache of rows gives.
TEST_P(KiviCache, AttendsToRowsAsACacheOfRowsDoes) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t len : {1, 100, 511}) {
      const AttentionCase made =
          attention_case(random_, dtype, {2, 3, 64}, {len, len}, 1, Inputs::kPlain);
      CacheSetup setup(dtype, 2, 64, 32, 512);
      const QuantisedKv cache = filled(setup, made.kv, len);
      ASSERT_EQ(cache.view().num_quantised_keys + cache.view().num_quantised_values, 0);
      EXPECT_TRUE(
          same_bits(attend(made.q, cache.view()), device_.attend(made.q, made.kv, Phase::kDecode)));
    }
  }
}

// Prompts below, at and above the residual; tokens one by one over several of its lengths.
TEST_P(KiviCache, TokensOneByOneGiveTheBytesOfAPromptOfAll) {
  constexpr std::int64_t kResidual = 32;
  for (const DType dtype : kTypes) {
    for (const std::int64_t bits : kBits) {
      const AttentionCase made =
          attention_case(random_, dtype, {2, 1, 64}, {150, 150}, 1, Inputs::kPlain);
      for (const std::int64_t len : {1, 31, 32, 33, 64, 65, 97, 150}) {
        const Kv all = without_newest(made.kv, 150 - len);
        CacheSetup at_once(dtype, bits, 64, 16, kResidual);
        const std::vector<std::byte> wanted = bytes_of(filled(at_once, all, len));
        for (const std::int64_t prompt : {1, 31, 32, 33, 64, 90}) {
          if (prompt < len) {
            CacheSetup grown(dtype, bits, 64, 16, kResidual);
            EXPECT_EQ(bytes_of(filled(grown, all, prompt)), wanted)
                << "prompt " << prompt << " of " << len;
          }
        }
      }
    }
  }
}

TEST_P(KiviCache, QuantisesWholeResidualsOfKeysAndAllButTheNewestValues) {
  const AttentionCase made =
      attention_case(random_, DType::kBF16, {2, 1, 64}, {130, 130}, 1, Inputs::kPlain);
  for (const auto& [len, keys, values] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{31, 0, 0},
        {32, 32, 0},
        {33, 32, 1},
        {63, 32, 31},
        {64, 64, 32},
        {130, 128, 98}}) {
    for (const std::int64_t prompt : {std::int64_t{1}, len}) {
      CacheSetup setup(DType::kBF16, 2, 64, 32, 32);
      const QuantisedKv cache = filled(setup, without_newest(made.kv, 130 - len), prompt);
      EXPECT_EQ(cache.view().num_quantised_keys, keys) << len;
      EXPECT_EQ(cache.view().num_quantised_values, values) << len;
    }
  }
}

// The newest token attends to itself and all R keys and R + 1 values as rows; then they turn.
TEST_P(KiviCache, QuantisesOnlyWhatHasAttendedAsARow) {
  const AttentionCase made =
      attention_case(random_, DType::kBF16, {2, 1, 64}, {64, 64}, 1, Inputs::kPlain);
  CacheSetup room(DType::kBF16, 2, 64, 32, 32);
  room.shape.prompt_len = 63;
  room.shape.growth_len = 1;
  Result<QuantisedKv> made_cache = QuantisedKv::allocate(backend(), room.shape, room.spans);
  ASSERT_TRUE(made_cache.ok());
  QuantisedKv growing = std::move(made_cache).value();
  growing.fill(backend(), device_.put(without_newest(made.kv, 1)).view());
  append(growing, made.kv, 63);
  EXPECT_EQ(growing.view().num_quantised_keys, 32);
  EXPECT_EQ(growing.view().num_quantised_values, 31);
  growing.settle(backend());
  EXPECT_EQ(growing.view().num_quantised_keys, 64);
  EXPECT_EQ(growing.view().num_quantised_values, 32);
}

}  // namespace
}  // namespace tidekv::conformance
