// attend, window_lse and score_keys against the oracle, and against one another.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/device.h"
#include "oracle/attention_ops.h"
#include "oracle/expected_attention.h"
#include "oracle/rounding.h"

namespace tidekv::conformance {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16};
constexpr std::int64_t kHeadDims[] = {2, 32, 64, 80, 96, 128, 256};
constexpr std::int64_t kGroups[] = {1, 2, 3, 4, 7};
// Around every tile edge a kernel may have.
constexpr std::int64_t kLengths[] = {1,   2,   15,  16,  17,  31,  32,  33,  63,  64,  65,
                                     127, 128, 129, 255, 256, 257, 511, 512, 513, 1000};

class Attention : public BackendTest {
 protected:
  void expect_attend_within_rounding(const AttentionCase& made, const std::string& what) {
    const oracle::Expected expected = oracle::attend(made.q, made.kv);
    for (const Phase phase : kPhases) {
      EXPECT_TRUE(within_bounds(device_.attend(made.q, made.kv, phase), expected))
          << what << ", phase " << static_cast<int>(phase);
    }
  }

  // Both passes of the compressor: log-sum-exps, then the weights of all keys.
  void expect_scores_within_rounding(const AttentionCase& made, const std::string& what) {
    const HostTensor lse = device_.window_lse(made.q, made.kv);
    EXPECT_TRUE(within_bounds(lse, oracle::window_lse(made.q, made.kv))) << what;
    const KeyRange all{0, shortest_head(made.kv)};
    EXPECT_TRUE(within_bounds(device_.score_keys(made.q, made.kv, lse, all),
                              oracle::score_keys(made.q, made.kv, lse, all)))
        << what;
  }

  // Moments of rows at positions 5, 6, ..., taken up to each of `ends` in turn.
  HostTensor moments_of(const HostTensor& q, const HostTensor& freq,
                        const std::vector<std::int64_t>& ends) {
    const std::int64_t dim = 2 * freq.cols();
    const DeviceTensor moments = device_.garbage(DType::kF32, q.cols() / dim * (dim + 1), dim);
    const DeviceTensor angles = device_.garbage(DType::kF32, q.rows(), dim);
    const DeviceTensor rows = device_.put(q);
    backend().rope_angles(device_.put(freq).view, Position{5}, angles.view);
    std::int64_t begin = 0;
    for (const std::int64_t end : ends) {
      backend().observe_queries(rows.view.rows_at(begin, end - begin),
                                angles.view.rows_at(begin, end - begin), begin, moments.view);
      begin = end;
    }
    return device_.get(moments.view);
  }
  static Expected exactly(const HostTensor& got) {
    Expected exact(got.rows(), got.cols());
    exact.value = got.values();
    return exact;
  }

  static std::int64_t shortest_head(const Kv& kv) {
    std::int64_t shortest = kv.heads.front().len;
    for (const HeadSpan& head : kv.heads) {
      shortest = std::min(shortest, head.len);
    }
    return shortest;
  }
};
TIDEKV_ON_EVERY_BACKEND(Attention);

TEST_P(Attention, KeyNormsAreWithinRoundingOverAnyRange) {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const std::int64_t head_dim : {2, 64, 90, 128, 300}) {
      const AttentionCase made =
          attention_case(random_, dtype, {2, 1, head_dim}, {70, 33}, 1, Inputs::kPlain);
      for (const KeyRange range : {KeyRange{0, 33}, KeyRange{5, 6}, KeyRange{7, 30}}) {
        const DeviceKv cache = device_.put(made.kv);
        const DeviceTensor scores = device_.garbage(DType::kF32, 2, range.len());
        backend().score_key_norms(cache.view(), range, scores.view);
        EXPECT_TRUE(
            within_bounds(device_.get(scores.view), oracle::score_key_norms(made.kv, range)))
            << "head_dim " << head_dim;
      }
    }
  }
}

TEST_P(Attention, DirectionsAreWithinRoundingOverAnyRange) {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const std::int64_t head_dim : {2, 64, 90, 128, 300}) {
      const AttentionCase made =
          attention_case(random_, dtype, {2, 1, head_dim}, {600, 33}, 1, Inputs::kPlain);
      const DeviceKv cache = device_.put(made.kv);
      const DeviceTensor anchors = device_.garbage(DType::kF32, 2, head_dim);
      backend().mean_directions(cache.view(), anchors.view);
      const HostTensor got = device_.get(anchors.view);
      EXPECT_TRUE(within_bounds(got, oracle::mean_directions(made.kv))) << head_dim;
      Expected exact(2, head_dim);
      exact.value = got.values();
      for (const KeyRange range : {KeyRange{0, 33}, KeyRange{5, 6}, KeyRange{7, 30}}) {
        const DeviceTensor scores = device_.garbage(DType::kF32, 2, range.len());
        backend().score_directions(cache.view(), anchors.view, range, scores.view);
        EXPECT_TRUE(within_bounds(device_.get(scores.view),
                                  oracle::score_directions(made.kv, exact, range)))
            << "head_dim " << head_dim;
      }
    }
  }
}

// Rows come in two parts, as chunks do.
TEST_P(Attention, ExpectedAttentionIsWithinRounding) {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const std::int64_t head_dim : {2, 64, 90, 128, 256}) {
      SCOPED_TRACE(head_dim);
      const AttentionCase made =
          attention_case(random_, dtype, {2, 2, head_dim}, {300, 290}, 60, Inputs::kPlain);
      const HostTensor freq = inverse_frequencies(head_dim);
      const HostTensor got = moments_of(made.q, freq, {17, 60});
      const Position first{5};
      Expected moments = oracle::query_moments(made.q, freq, first);
      EXPECT_TRUE(within_bounds(got, moments));
      moments = exactly(got);

      const Backend::PositionsAhead ahead{Position{65}, 512};
      const DeviceTensor expected = device_.garbage(DType::kF32, got.rows(), head_dim);
      backend().expect_queries(device_.put(got).view, 60, device_.put(freq).view, ahead,
                               expected.view);
      const HostTensor queries = device_.get(expected.view);
      EXPECT_TRUE(within_bounds(queries, oracle::expect_queries(moments, 60, freq, ahead)));

      const KeyRange all{3, 280};
      const DeviceKv cache = device_.put(made.kv);
      const DeviceTensor lse = device_.garbage(DType::kF32, 8, 1);
      backend().expected_lse(cache.view(), expected.view, all, lse.view);
      EXPECT_TRUE(within_bounds(device_.get(lse.view),
                                oracle::expected_lse(made.kv, exactly(queries), all)));
      for (const KeyRange range : {all, KeyRange{3, 4}, KeyRange{100, 277}}) {
        const DeviceTensor scores = device_.garbage(DType::kF32, 2, range.len());
        backend().score_expected(cache.view(), expected.view, lse.view, range, scores.view);
        EXPECT_TRUE(within_bounds(device_.get(scores.view),
                                  oracle::score_expected(made.kv, exactly(queries), all, range)));
      }
    }
  }
}

TEST_P(Attention, DirectionsOfKeysWithoutLengthAreNoNumbersOutOfRange) {
  AttentionCase made = attention_case(random_, DType::kF32, {1, 1, 8}, {5}, 1, Inputs::kPlain);
  made.kv.keys.fill(0.0);
  const DeviceKv cache = device_.put(made.kv);
  const DeviceTensor anchors = device_.garbage(DType::kF32, 1, 8);
  const DeviceTensor scores = device_.garbage(DType::kF32, 1, 5);
  backend().mean_directions(cache.view(), anchors.view);
  backend().score_directions(cache.view(), anchors.view, {0, 5}, scores.view);
  const HostTensor got = device_.get(scores.view);
  for (std::int64_t key = 0; key < 5; ++key) {
    EXPECT_EQ(got.at(0, key), 0.0);
  }
}

TEST_P(Attention, IsWithinRoundingForAllHeadDimsAndGroups) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t head_dim : kHeadDims) {
      for (const std::int64_t group : kGroups) {
        const AttentionCase made =
            attention_case(random_, dtype, {2, group, head_dim}, {40, 23}, 3, Inputs::kPlain);
        const std::string what = std::string(name_of(dtype)) + ", head_dim " +
                                 std::to_string(head_dim) + ", group " + std::to_string(group);
        expect_attend_within_rounding(made, what);
        expect_scores_within_rounding(made, what);
      }
    }
  }
}

TEST_P(Attention, IsWithinRoundingForCacheLengthsAroundTileEdges) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t len : kLengths) {
      const std::int64_t rows = std::min<std::int64_t>(len, 3);
      const AttentionCase made =
          attention_case(random_, dtype, {2, 2, 32}, {len, len + 5}, rows, Inputs::kPlain);
      const std::string what = std::string(name_of(dtype)) + ", length " + std::to_string(len);
      expect_attend_within_rounding(made, what);
      expect_scores_within_rounding(made, what);
    }
  }
}

TEST_P(Attention, IsWithinRoundingForHardInputs) {
  for (const DType dtype : kTypes) {
    for (const Inputs inputs : kAllInputs) {
      const AttentionCase made = attention_case(random_, dtype, {2, 3, 64}, {300, 290}, 8, inputs);
      const std::string what =
          std::string(name_of(dtype)) + ", inputs " + std::to_string(static_cast<int>(inputs));
      expect_attend_within_rounding(made, what);
      expect_scores_within_rounding(made, what);
    }
  }
}

// The first row sees one key only, the last all of them.
TEST_P(Attention, IsWithinRoundingOverAWholePromptAtOnce) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t len : {1, 16, 17, 65, 140}) {
      const AttentionCase made =
          attention_case(random_, dtype, {2, 2, 64}, {len, len}, len, Inputs::kExtreme);
      const std::string what = std::string(name_of(dtype)) + ", length " + std::to_string(len);
      expect_attend_within_rounding(made, what);
      expect_scores_within_rounding(made, what);
    }
  }
}

TEST_P(Attention, ReturnsTheValueOfTheOnlyKeyARowSees) {
  for (const DType dtype : kTypes) {
    const AttentionCase made =
        attention_case(random_, dtype, {1, 1, 64}, {40}, 40, Inputs::kExtreme);
    for (const Phase phase : kPhases) {
      const HostTensor out = device_.attend(made.q, made.kv, phase);
      EXPECT_TRUE(same_bits(out.rows_at(0, 1), made.kv.values.rows_at(made.kv.heads[0].offset, 1)));
    }
  }
}

// One logit 160 above all others: the others' weights vanish, wherever the key lies.
TEST_P(Attention, ReturnsTheValueOfAKeyThatOutweighsAllOthers) {
  for (const std::int64_t winner : {0, 15, 16, 255, 256, 257, 599}) {
    AttentionCase made = attention_case(random_, DType::kF32, {1, 1, 64}, {600}, 1, Inputs::kPlain);
    const HeadSpan& head = made.kv.heads[0];
    for (std::int64_t key = 0; key < head.len; ++key) {
      for (std::int64_t i = 0; i < 64; ++i) {
        made.kv.keys.set(head.offset + key, i, key == winner ? 10.0 : -10.0);
      }
    }
    made.q.fill(1.0);
    for (const Phase phase : kPhases) {
      EXPECT_TRUE(same_bits(device_.attend(made.q, made.kv, phase),
                            made.kv.values.rows_at(head.offset + winner, 1)))
          << "key " << winner;
    }
  }
}

TEST_P(Attention, LeavesOtherQueriesAndTheCacheAlone) {
  const AttentionCase made =
      attention_case(random_, DType::kBF16, {2, 2, 64}, {90, 77}, 9, Inputs::kPlain);
  HostTensor frame = random_.normals(DType::kBF16, 15, made.q.cols());
  frame.put_rows(4, made.q);
  for (const Phase phase : kPhases) {
    const DeviceTensor queries = device_.put(frame);
    const DeviceKv cache = device_.put(made.kv);
    backend().attend(queries.view.rows_at(4, 9), cache.view(), {.phase = phase});
    HostTensor wanted = frame;
    wanted.put_rows(4, device_.attend(made.q, made.kv, phase));
    EXPECT_TRUE(same_bits(device_.get(queries.view), wanted));
    EXPECT_TRUE(same_bits(device_.get(cache.keys.view), made.kv.keys));
    EXPECT_TRUE(same_bits(device_.get(cache.values.view), made.kv.values));
  }
}

// Slots that hold no data: zeros against NaNs and infinities.
TEST_P(Attention, NeverReadsSlotsOutsideItsHeads) {
  for (const DType dtype : kTypes) {
    const AttentionCase poisoned =
        attention_case(random_, dtype, {3, 2, 64}, {257, 31, 100}, 12, Inputs::kPlain);
    Kv clean = poisoned.kv;
    clean.keys.fill(0.0);
    clean.values.fill(0.0);
    for (const HeadSpan& head : clean.heads) {
      clean.keys.put_rows(head.offset, poisoned.kv.keys.rows_at(head.offset, head.len));
      clean.values.put_rows(head.offset, poisoned.kv.values.rows_at(head.offset, head.len));
    }
    for (const Phase phase : kPhases) {
      EXPECT_TRUE(same_bits(device_.attend(poisoned.q, poisoned.kv, phase),
                            device_.attend(poisoned.q, clean, phase)));
    }
    const HostTensor lse = device_.window_lse(poisoned.q, poisoned.kv);
    EXPECT_TRUE(same_bits(lse, device_.window_lse(poisoned.q, clean)));
    EXPECT_TRUE(same_bits(device_.score_keys(poisoned.q, poisoned.kv, lse, {0, 31}),
                          device_.score_keys(poisoned.q, clean, lse, {0, 31})));
  }
}

// Rows before the last see fewer keys; what those keys hold must not reach them.
TEST_P(Attention, NeverLetsAMaskedKeyReachARow) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t len : {40, 256, 300}) {
      const AttentionCase made =
          attention_case(random_, dtype, {1, 3, 64}, {len}, 30, Inputs::kPlain);
      Kv poisoned = made.kv;
      const std::int64_t last = made.kv.heads[0].offset + len - 1;
      for (std::int64_t i = 0; i < 64; ++i) {
        poisoned.keys.set(last, i, std::numeric_limits<double>::quiet_NaN());
        poisoned.values.set(last, i, std::numeric_limits<double>::infinity());
      }
      for (const Phase phase : kPhases) {
        const HostTensor got = device_.attend(made.q, poisoned, phase);
        const HostTensor clean = device_.attend(made.q, made.kv, phase);
        EXPECT_TRUE(same_bits(got.rows_at(0, 29), clean.rows_at(0, 29))) << "length " << len;
      }
      const HostTensor lse = device_.window_lse(made.q, made.kv);
      const HostTensor poisoned_lse = device_.window_lse(made.q, poisoned);
      for (std::int64_t row = 0; row < lse.rows(); ++row) {
        for (std::int64_t col = 0; col < 29; ++col) {
          ASSERT_EQ(poisoned_lse.at(row, col), lse.at(row, col)) << "length " << len;
        }
      }
    }
  }
}

// The weights of a row add up to 1 when both passes use one product and one exponential: each
// weight then carries only the roundings of rescaling and of the sum, not those of the logits.
TEST_P(Attention, WeightsOfBothPassesAddUpToOne) {
  for (const DType dtype : kTypes) {
    for (const Inputs inputs : kAllInputs) {
      constexpr std::int64_t kLen = 600;
      const AttentionCase made =
          attention_case(random_, dtype, {2, 2, 64}, {kLen, kLen}, 16, inputs);
      const HostTensor lse = device_.window_lse(made.q, made.kv);
      const HostTensor weights = device_.score_keys(made.q, made.kv, lse, {0, kLen});
      for (std::int64_t row = 0; row < weights.rows(); ++row) {
        double sum = 0;
        for (std::int64_t key = 0; key < kLen; ++key) {
          sum += weights.at(row, key);
        }
        // Differences to a running maximum (at most 2 * 120 in all), at most one rescaling per 16
        // keys, two exponentials, the sum over keys and the quotient.
        const double bound = 240 * oracle::kFloatRounding +
                             (2 + kLen / 16) * (oracle::kExpRounding + 2 * oracle::kFloatRounding) +
                             oracle::rounding_growth(kLen + 2);
        ASSERT_NEAR(sum, 1.0, bound) << "row " << row;
      }
    }
  }
}

// With one-hot values attention returns its own weights, to be compared with those of pass 2.
TEST_P(Attention, UsesTheWeightsThatTheTwoPassesFind) {
  constexpr std::int64_t kLen = 128;
  for (const Inputs inputs : kAllInputs) {
    AttentionCase made = attention_case(random_, DType::kF32, {1, 3, kLen}, {kLen}, 5, inputs);
    const std::int64_t first = made.kv.heads[0].offset;
    for (std::int64_t key = 0; key < kLen; ++key) {
      for (std::int64_t i = 0; i < kLen; ++i) {
        made.kv.values.set(first + key, i, key == i ? 1.0 : 0.0);
      }
    }
    const HostTensor out = device_.attend(made.q, made.kv);
    const HostTensor weights =
        device_.score_keys(made.q, made.kv, device_.window_lse(made.q, made.kv), {0, kLen});
    // Differences to the maximum, one rescaling per 16 keys at most, an exponential, a quotient.
    const double relative = 480 * oracle::kFloatRounding +
                            (1 + kLen / 16) * (oracle::kExpRounding + 2 * oracle::kFloatRounding);
    for (std::int64_t row = 0; row < 5; ++row) {
      for (std::int64_t head = 0; head < 3; ++head) {
        for (std::int64_t key = 0; key < kLen; ++key) {
          const double weight = weights.at(head * 5 + row, key);
          ASSERT_NEAR(out.at(row, head * kLen + key), weight,
                      relative * weight + oracle::kFloatTiny)
              << "row " << row << ", head " << head << ", key " << key;
        }
      }
    }
  }
}

TEST_P(Attention, GivesZeroWeightToKeysARowDoesNotSee) {
  const AttentionCase made =
      attention_case(random_, DType::kBF16, {1, 2, 64}, {50}, 20, Inputs::kPlain);
  const HostTensor lse = device_.window_lse(made.q, made.kv);
  const HostTensor weights = device_.score_keys(made.q, made.kv, lse, {0, 50});
  for (std::int64_t head = 0; head < 2; ++head) {
    for (std::int64_t row = 0; row < 20; ++row) {
      for (std::int64_t key = 0; key < 50; ++key) {
        const double weight = weights.at(head * 20 + row, key);
        ASSERT_EQ(weight == 0.0, key > 30 + row) << row << ", " << key << ": " << weight;
      }
    }
  }
}

}  // namespace
}  // namespace tidekv::conformance
