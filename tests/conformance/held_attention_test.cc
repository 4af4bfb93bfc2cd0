// Attention that holds its mask or its scores, and the log-sum-exps that attention leaves: bit for
// bit what it computes without them, and what window_lse finds.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "conformance/device.h"

namespace tidekv::conformance {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class HeldAttention : public BackendTest {
 protected:
  // Whatever is held: the output, and the log-sum-exps of all rows and of a few.
  void expect_same_whatever_is_held(const AttentionCase& made, const std::string& what) {
    const HostTensor wanted = device_.attend(made.q, made.kv);
    for (const Held held : kAllHeld) {
      for (const std::int64_t window_len : {std::int64_t{1}, made.q.rows()}) {
        device_.poison_workspace();
        const Attended got = device_.attend_and_look(made.q, made.kv, held, window_len);
        ASSERT_TRUE(same_bits(got.out, wanted)) << what << ", held " << static_cast<int>(held);
        const HostTensor window = made.q.rows_at(made.q.rows() - window_len, window_len);
        expect_between_untouched(got.lse, device_.window_lse(window, made.kv), what);
      }
    }
  }

  static void expect_between_untouched(const HostTensor& lse, const HostTensor& wanted,
                                       const std::string& what) {
    ASSERT_EQ(lse.rows(), wanted.rows());
    for (std::int64_t row = 0; row < lse.rows(); ++row) {
      ASSERT_TRUE(std::isnan(lse.at(row, 0)) && std::isnan(lse.at(row, lse.cols() - 1))) << what;
      for (std::int64_t col = 0; col < wanted.cols(); ++col) {
        ASSERT_EQ(lse.at(row, col + 1), wanted.at(row, col))
            << what << ", row " << row << ", column " << col;
      }
    }
  }
};
TIDEKV_ON_EVERY_BACKEND(HeldAttention);

TEST_P(HeldAttention, ChangesNoBitForAllHeadDimsAndGroups) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t head_dim : {2, 64, 80, 128, 256}) {
      for (const std::int64_t group : {1, 3, 4}) {
        expect_same_whatever_is_held(
            attention_case(random_, dtype, {2, group, head_dim}, {40, 23}, 5, Inputs::kPlain),
            std::string(name_of(dtype)) + ", head_dim " + std::to_string(head_dim) + ", group " +
                std::to_string(group));
      }
    }
  }
}

TEST_P(HeldAttention, ChangesNoBitAroundTileEdgesForHardInputs) {
  for (const DType dtype : kTypes) {
    for (const Inputs inputs : kAllInputs) {
      for (const std::int64_t len : {1, 31, 33, 255, 256, 257, 513}) {
        for (const std::int64_t rows : {std::int64_t{1}, std::min<std::int64_t>(len, 37), len}) {
          expect_same_whatever_is_held(
              attention_case(random_, dtype, {2, 2, 32}, {len, len + 5}, rows, inputs),
              std::string(name_of(dtype)) + ", length " + std::to_string(len) + ", rows " +
                  std::to_string(rows));
        }
      }
    }
  }
}

// Values of keys that a row does not see may be infinite.
TEST_P(HeldAttention, LeavesMaskedKeysOut) {
  AttentionCase made = attention_case(random_, DType::kF32, {1, 3, 64}, {300}, 30, Inputs::kPlain);
  const HostTensor clean = device_.attend(made.q, made.kv);
  const std::int64_t last = made.kv.heads[0].offset + 299;
  for (std::int64_t i = 0; i < 64; ++i) {
    made.kv.keys.set(last, i, std::numeric_limits<double>::quiet_NaN());
    made.kv.values.set(last, i, kInfinity);
  }
  for (const Held held : kAllHeld) {
    const Attended got = device_.attend_and_look(made.q, made.kv, held, 1);
    EXPECT_TRUE(same_bits(got.out.rows_at(0, 29), clean.rows_at(0, 29)));
  }
}

TEST_P(HeldAttention, MaskIsZeroWhereARowSeesTheKey) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t keys : {7, 300}) {
      const DeviceTensor mask = device_.garbage(dtype, 7, keys);
      backend().causal_mask(mask.view);
      const HostTensor got = device_.get(mask.view);
      for (std::int64_t row = 0; row < 7; ++row) {
        for (std::int64_t key = 0; key < keys; ++key) {
          ASSERT_EQ(got.at(row, key), key <= keys - 7 + row ? 0.0 : -kInfinity)
              << row << ", " << key;
        }
      }
    }
  }
}

// A mask that hides the newest keys: the row then sees the cache as it was before them.
TEST_P(HeldAttention, SeesWhatTheMaskShowsAndNothingElse) {
  constexpr std::int64_t kLen = 400;
  for (const DType dtype : kTypes) {
    for (const std::int64_t hidden : {1, 5, 144, 300}) {
      const AttentionCase made =
          attention_case(random_, dtype, {2, 2, 64}, {kLen}, 1, Inputs::kPlain);
      const HostTensor wanted = device_.attend(made.q, without_newest(made.kv, hidden));
      HostTensor mask(dtype, 1, kLen);
      for (std::int64_t key = 0; key < kLen; ++key) {
        mask.set(0, key, key < kLen - hidden ? 0.0 : -kInfinity);
      }
      const DeviceTensor on_device = device_.put(mask);
      const DeviceTensor scores = device_.garbage(DType::kF32, 2, 2 * kLen);
      const DeviceTensor weights = device_.garbage(DType::kF32, 2, 2 * kLen);
      for (const bool holds_scores : {false, true}) {
        const DeviceTensor q = device_.put(made.q);
        const DeviceKv cache = device_.put(made.kv);
        AttentionOptions options{.mask = on_device.view};
        if (holds_scores) {
          options.scores = scores.view;
          options.weights = weights.view;
        }
        backend().attend(q.view, cache.view(), options);
        EXPECT_TRUE(same_bits(device_.get(q.view), wanted)) << hidden << " hidden";
      }
    }
  }
}

// Row query * group + g of a KV head, one head's behind the other's.
TEST_P(HeldAttention, LeavesScoresAndWeightsOfEveryKeyARowSees) {
  const std::vector<std::int64_t> lens = {300, 40};
  constexpr std::int64_t kRows = 9;
  constexpr std::int64_t kGroup = 3;
  const AttentionCase made =
      attention_case(random_, DType::kBF16, {2, kGroup, 64}, lens, kRows, Inputs::kPlain);
  const Attended got = device_.attend_and_look(made.q, made.kv, Held::kScores, kRows);
  const HostTensor& scores = got.scores;
  std::int64_t entry = 0;
  for (std::int64_t head = 0; head < 2; ++head) {
    const std::int64_t len = lens[static_cast<std::size_t>(head)];
    for (std::int64_t row = 0; row < kRows * kGroup; ++row) {
      const std::int64_t q_head = head * kGroup + row % kGroup;
      double largest = -kInfinity;
      for (std::int64_t key = 0; key < len; ++key, ++entry) {
        const std::int64_t at = entry / scores.cols();
        const double score = scores.at(at, entry % scores.cols());
        const double weight = got.weights.at(at, entry % scores.cols());
        const bool seen = key <= len - kRows + row / kGroup;
        ASSERT_EQ(std::isinf(score), !seen) << "head " << head << ", row " << row;
        ASSERT_EQ(weight == 0.0, !seen);
        largest = std::max(largest, score);
      }
      const float scale = 1.0F / std::sqrt(64.0F);
      ASSERT_EQ(static_cast<float>(largest) * scale, got.lse.at(q_head, 1 + row / kGroup));
    }
  }
}

// A chunk ends inside the window: each part of it leaves its own columns.
TEST_P(HeldAttention, ChunksLeaveTheirColumnsOfTheWindow) {
  constexpr std::int64_t kWindow = 20;
  for (const DType dtype : kTypes) {
    const AttentionCase made =
        attention_case(random_, dtype, {2, 3, 64}, {300}, 50, Inputs::kPlain);
    const HostTensor window = made.q.rows_at(30, kWindow);
    const HostTensor wanted = device_.window_lse(window, made.kv);
    for (const std::int64_t in_last : {1, 7, 19, 20}) {
      const DeviceTensor lse = device_.garbage(DType::kF32, wanted.rows(), kWindow);
      const DeviceTensor before = device_.put(made.q.rows_at(0, 50 - in_last));
      const DeviceTensor last = device_.put(made.q.rows_at(50 - in_last, in_last));
      const DeviceKv shorter = device_.put(without_newest(made.kv, in_last));
      const DeviceKv cache = device_.put(made.kv);
      const std::int64_t in_first = kWindow - in_last;
      backend().attend(before.view, shorter.view(), {.lse = {lse.view, 0, in_first}});
      backend().attend(last.view, cache.view(), {.lse = {lse.view, in_first, in_last}});
      EXPECT_TRUE(same_bits(device_.get(lse.view), wanted)) << in_last << " in the last chunk";
    }
  }
}

}  // namespace
}  // namespace tidekv::conformance
