// A row's bits depend neither on its neighbours, nor on how the rows are cut into calls, nor on the
// number of threads, nor on what scratch held before.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "conformance/device.h"
#include "conformance/projected_heads.h"

namespace tidekv::conformance {
namespace {

constexpr std::int64_t kPieces[] = {1, 7, 64, 250};
constexpr DType kTypes[] = {DType::kF32, DType::kBF16};

using RowOperation = std::function<HostTensor(const HostTensor& rows)>;

class RowInvariance : public BackendTest {
 protected:
  // `operation` maps rows to rows, each on its own.
  void expect_rows_independent(const HostTensor& x, const RowOperation& operation,
                               const std::string& what) {
    const HostTensor whole = operation(x);
    for (const std::int64_t piece : kPieces) {
      // Single rows are many: every ninth, which meets every place in a tile.
      const std::int64_t step = piece == 1 ? 9 : piece;
      for (std::int64_t first = 0; first < x.rows(); first += step) {
        const std::int64_t count = std::min(piece, x.rows() - first);
        ASSERT_TRUE(same_bits(operation(x.rows_at(first, count)), whole.rows_at(first, count)))
            << what << ", rows " << first << " to " << first + count;
      }
    }
    // Other neighbours: the same rows in reverse order.
    HostTensor reversed(x.dtype(), x.rows(), x.cols());
    for (std::int64_t row = 0; row < x.rows(); ++row) {
      reversed.put_rows(row, x.rows_at(x.rows() - 1 - row, 1));
    }
    const HostTensor mirrored = operation(reversed);
    for (std::int64_t row = 0; row < x.rows(); ++row) {
      ASSERT_TRUE(same_bits(mirrored.rows_at(x.rows() - 1 - row, 1), whole.rows_at(row, 1)))
          << what << ", row " << row << " among others";
    }
  }
};
TIDEKV_ON_EVERY_BACKEND(RowInvariance);

TEST_P(RowInvariance, HoldsForMatmul) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t depth : {70, 600}) {
      const HostTensor x = random_.normals(dtype, 263, depth);
      const HostTensor w = random_.normals(DType::kBF16, 45, depth);
      expect_rows_independent(
          x, [&](const HostTensor& rows) { return device_.matmul(rows, w, dtype); }, "matmul");
    }
  }
}

TEST_P(RowInvariance, HoldsForAccumulatingMatmul) {
  const HostTensor x = random_.normals(DType::kBF16, 263, 300);
  const HostTensor w = random_.normals(DType::kBF16, 45, 300);
  const HostTensor one_row = random_.normals(DType::kBF16, 1, 45);
  expect_rows_independent(
      x,
      [&](const HostTensor& rows) {
        HostTensor old(DType::kBF16, rows.rows(), 45);
        for (std::int64_t row = 0; row < rows.rows(); ++row) {
          old.put_rows(row, one_row);
        }
        return device_.matmul_onto(rows, w, old);
      },
      "accumulating matmul");
}

TEST_P(RowInvariance, HoldsForMatmulWithABias) {
  const HostTensor x = random_.normals(DType::kBF16, 263, 300);
  const HostTensor w = random_.normals(DType::kBF16, 45, 300);
  const HostTensor bias = random_.normals(DType::kF32, 1, 45);
  expect_rows_independent(
      x,
      [&](const HostTensor& rows) {
        return device_.matmul(rows, w, DType::kBF16, Phase::kPrefill, {.bias = &bias});
      },
      "matmul with a bias");
}

TEST_P(RowInvariance, HoldsForGatedMatmul) {
  for (const DType dtype : kTypes) {
    const HostTensor x = random_.normals(dtype, 310, 150);
    const Linear<HostTensor> gate{random_.normals(DType::kBF16, 45, 150),
                                  random_.normals(DType::kF32, 1, 45)};
    const Linear<HostTensor> up{random_.normals(DType::kF16, 45, 150)};
    for (const Phase phase : kPhases) {
      expect_rows_independent(
          x, [&](const HostTensor& rows) { return device_.gated_matmul(rows, gate, up, phase); },
          "gated_matmul");
    }
  }
}

// Queries go into rows, keys and values into a cache.
TEST_P(RowInvariance, HoldsForProjectedHeads) {
  for (const DType dtype : kTypes) {
    const HostTensor turn = random_.normals(DType::kF32, 1, 80);
    HostProjection projection;
    projection.q = {random_.normals(DType::kBF16, 160, 150)};
    projection.k = {random_.normals(DType::kBF16, 80, 150), random_.normals(DType::kF32, 1, 80)};
    projection.v = {random_.normals(DType::kF16, 80, 150)};
    projection.q_norm = random_.normals(DType::kF32, 1, 80);
    for (const Phase phase : kPhases) {
      const auto heads = [&](const HostTensor& rows) {
        projection.angles = HostTensor(DType::kF32, rows.rows(), 80);
        for (std::int64_t row = 0; row < rows.rows(); ++row) {
          projection.angles.put_rows(row, turn);
        }
        return project_heads(device_, rows, projection, phase);
      };
      const HostTensor x = random_.normals(dtype, 310, 150);
      expect_rows_independent(
          x, [&](const HostTensor& rows) { return heads(rows).q; }, "queries");
      expect_rows_independent(
          x, [&](const HostTensor& rows) { return heads(rows).k; }, "keys");
      expect_rows_independent(
          x, [&](const HostTensor& rows) { return heads(rows).v; }, "values");
    }
  }
}

TEST_P(RowInvariance, HoldsForRmsNorm) {
  for (const DType dtype : kTypes) {
    const HostTensor weight = random_.normals(DType::kF32, 1, 77);
    expect_rows_independent(
        random_.normals(dtype, 300, 77),
        [&](const HostTensor& rows) { return device_.rms_norm(rows, weight, 1e-5F); }, "rms_norm");
  }
}

TEST_P(RowInvariance, HoldsForSwiGlu) {
  for (const DType dtype : kTypes) {
    const std::int64_t cols = 77;
    expect_rows_independent(
        random_.normals(dtype, 300, cols),
        [&](const HostTensor& rows) { return device_.swiglu(rows, rows); }, "swiglu");
  }
}

TEST_P(RowInvariance, HoldsForRope) {
  for (const DType dtype : kTypes) {
    const HostTensor turn = random_.normals(DType::kF32, 1, 80);
    for (const RopePairs pairs : {RopePairs::kHalves, RopePairs::kAdjacent}) {
      expect_rows_independent(
          random_.normals(dtype, 300, 240),
          [&](const HostTensor& rows) {
            HostTensor angles(DType::kF32, rows.rows(), 80);
            for (std::int64_t row = 0; row < rows.rows(); ++row) {
              angles.put_rows(row, turn);
            }
            return rotated(device_, rows, angles, pairs);
          },
          "rope");
    }
  }
}

TEST_P(RowInvariance, HoldsForRopeAngles) {
  const HostTensor inverse_freq = random_.uniforms(DType::kF32, 1, 40, 1e-5, 1.0);
  const DeviceTensor freq = device_.put(inverse_freq);
  const DeviceTensor whole = device_.garbage(DType::kF32, 300, 80);
  backend().rope_angles(freq.view, Position{1000}, whole.view);
  const HostTensor wanted = device_.get(whole.view);
  for (const std::int64_t first : {0, 1, 63, 299}) {
    const DeviceTensor one = device_.garbage(DType::kF32, 1, 80);
    backend().rope_angles(freq.view, Position{static_cast<std::int32_t>(1000 + first)}, one.view);
    EXPECT_TRUE(same_bits(device_.get(one.view), wanted.rows_at(first, 1)));
  }
}

// --- a prompt fed in chunks ---

class Chunking : public BackendTest {
 protected:
  struct Prompt {
    HostTensor q;
    HostTensor k;
    HostTensor v;
    AttentionShape shape;
  };

  Prompt random_prompt(DType dtype, const AttentionShape& shape, std::int64_t len) {
    const std::int64_t kv_dim = shape.num_kv_heads * shape.head_dim;
    return {random_.normals(dtype, len, kv_dim * shape.group), random_.normals(dtype, len, kv_dim),
            random_.normals(dtype, len, kv_dim), shape};
  }

  // Appends and attends chunk by chunk; unused slots are NaN.
  HostTensor attend_in_chunks(const Prompt& prompt, std::int64_t chunk_len) {
    const std::int64_t len = prompt.q.rows();
    DeviceKv cache;
    for (std::int64_t head = 0; head < prompt.shape.num_kv_heads; ++head) {
      cache.heads.push_back({head * (len + 3) + 1, 0, len + 2});
    }
    const std::int64_t slab_rows = prompt.shape.num_kv_heads * (len + 3);
    cache.keys = device_.garbage(prompt.q.dtype(), slab_rows, prompt.shape.head_dim);
    cache.values = device_.garbage(prompt.q.dtype(), slab_rows, prompt.shape.head_dim);
    HostTensor out(prompt.q.dtype(), len, prompt.q.cols());
    for (std::int64_t first = 0; first < len; first += chunk_len) {
      const std::int64_t rows = std::min(chunk_len, len - first);
      device_.poison_workspace();
      const DeviceTensor queries = device_.put(prompt.q.rows_at(first, rows));
      device_.append(cache, prompt.k.rows_at(first, rows), prompt.v.rows_at(first, rows));
      backend().attend(queries.view, cache.view(), {});
      out.put_rows(first, device_.get(queries.view));
    }
    return out;
  }
};
TIDEKV_ON_EVERY_BACKEND(Chunking);

TEST_P(Chunking, AttentionOverAPrefixThenGoingOnEqualsAttentionAtOnce) {
  for (const DType dtype : kTypes) {
    for (const AttentionShape& shape : {AttentionShape{2, 1, 64}, AttentionShape{1, 3, 80}}) {
      const Prompt prompt = random_prompt(dtype, shape, 530);
      const HostTensor whole = attend_in_chunks(prompt, 530);
      for (const std::int64_t chunk_len : {13, 64, 250, 529}) {
        ASSERT_TRUE(same_bits(attend_in_chunks(prompt, chunk_len), whole))
            << name_of(dtype) << ", chunks of " << chunk_len;
      }
    }
  }
}

TEST_P(Chunking, ByTheTokenEqualsAtOnce) {
  const Prompt prompt = random_prompt(DType::kBF16, {2, 2, 32}, 270);
  EXPECT_TRUE(same_bits(attend_in_chunks(prompt, 1), attend_in_chunks(prompt, 270)));
}

// The window's log-sum-exps, row by row and in pieces, each with the cache as long as its rows see.
TEST_P(Chunking, WindowLseOfARowDependsOnNoOtherRow) {
  for (const DType dtype : kTypes) {
    const AttentionCase made =
        attention_case(random_, dtype, {2, 3, 64}, {300, 263}, 70, Inputs::kPlain);
    const HostTensor whole = device_.window_lse(made.q, made.kv);
    for (const std::int64_t piece : {1, 7, 64}) {
      for (std::int64_t first = 0; first < 70; first += piece) {
        const std::int64_t rows = std::min<std::int64_t>(piece, 70 - first);
        const HostTensor lse = device_.window_lse(made.q.rows_at(first, rows),
                                                  without_newest(made.kv, 70 - first - rows));
        for (std::int64_t row = 0; row < lse.rows(); ++row) {
          for (std::int64_t col = 0; col < rows; ++col) {
            ASSERT_EQ(lse.at(row, col), whole.at(row, first + col))
                << "pieces of " << piece << ", row " << first + col;
          }
        }
      }
    }
  }
}

// Also for a range that begins inside a tile, and for a single key.
TEST_P(Chunking, ScoresAreTheSameForEveryRangePartition) {
  constexpr std::int64_t kLen = 600;
  for (const DType dtype : kTypes) {
    const AttentionCase made =
        attention_case(random_, dtype, {2, 2, 64}, {kLen, kLen}, 8, Inputs::kExtreme);
    const HostTensor lse = device_.window_lse(made.q, made.kv);
    const HostTensor whole = device_.score_keys(made.q, made.kv, lse, {0, kLen});
    for (const KeyRange range :
         {KeyRange{0, 1}, KeyRange{0, 64}, KeyRange{37, 38}, KeyRange{61, 320}, KeyRange{255, 257},
          KeyRange{256, 600}, KeyRange{590, 600}, KeyRange{599, 600}}) {
      const HostTensor part = device_.score_keys(made.q, made.kv, lse, range);
      for (std::int64_t row = 0; row < part.rows(); ++row) {
        for (std::int64_t key = range.begin; key < range.end; ++key) {
          ASSERT_EQ(part.at(row, key - range.begin), whole.at(row, key))
              << "range " << range.begin << " to " << range.end;
        }
      }
    }
  }
}

TEST_P(Chunking, DirectionsAreTheSameForEveryRangeAndWhateverHeadsStandBeside) {
  const AttentionCase made =
      attention_case(random_, DType::kBF16, {2, 1, 64}, {700, 650}, 1, Inputs::kPlain);
  const auto scores_of = [&](const Kv& kv, KeyRange range) {
    const DeviceKv cache = device_.put(kv);
    const DeviceTensor anchors = device_.garbage(DType::kF32, kv.num_kv_heads(), 64);
    const DeviceTensor scores = device_.garbage(DType::kF32, kv.num_kv_heads(), range.len());
    backend().mean_directions(cache.view(), anchors.view);
    backend().score_directions(cache.view(), anchors.view, range, scores.view);
    return device_.get(scores.view);
  };
  const HostTensor whole = scores_of(made.kv, {0, 650});
  for (const KeyRange range : {KeyRange{0, 1}, KeyRange{0, 64}, KeyRange{37, 38},
                               KeyRange{255, 513}, KeyRange{649, 650}}) {
    const HostTensor part = scores_of(made.kv, range);
    for (std::int64_t head = 0; head < 2; ++head) {
      Kv alone = made.kv;
      alone.heads = {made.kv.heads[static_cast<std::size_t>(head)]};
      const HostTensor own = scores_of(alone, range);
      for (std::int64_t key = range.begin; key < range.end; ++key) {
        ASSERT_EQ(part.at(head, key - range.begin), whole.at(head, key)) << "key " << key;
        ASSERT_EQ(own.at(0, key - range.begin), whole.at(head, key)) << "key " << key;
      }
    }
  }
}

// A head's own numbers, whatever heads stand beside it and wherever it lies in the slab.
TEST_P(Chunking, AHeadDependsOnNoOtherHead) {
  const AttentionCase made =
      attention_case(random_, DType::kBF16, {3, 2, 64}, {300, 40, 257}, 11, Inputs::kPlain);
  for (const Phase phase : kPhases) {
    const HostTensor all = device_.attend(made.q, made.kv, phase);
    for (std::int64_t head = 0; head < 3; ++head) {
      Kv alone = made.kv;
      alone.heads = {made.kv.heads[static_cast<std::size_t>(head)]};
      HostTensor q(DType::kBF16, 11, 128);
      HostTensor wanted(DType::kBF16, 11, 128);
      for (std::int64_t row = 0; row < 11; ++row) {
        for (std::int64_t i = 0; i < 128; ++i) {
          q.set(row, i, made.q.at(row, head * 128 + i));
          wanted.set(row, i, all.at(row, head * 128 + i));
        }
      }
      EXPECT_TRUE(same_bits(device_.attend(q, alone, phase), wanted)) << "head " << head;
    }
  }
}

// --- thread counts ---

class ThreadCounts : public BackendTest {
 protected:
  ThreadCounts() {
    for (const int num_threads : {1, 3, 5}) {
      others_.push_back(std::make_unique<Device>(*GetParam(), num_threads));
    }
  }

  // `operation` gives the same bits on 1, 2, 3 and 5 threads.
  void expect_same(const std::function<HostTensor(Device&)>& operation, const std::string& what) {
    const HostTensor on_two = operation(device_);
    for (const auto& other : others_) {
      EXPECT_TRUE(same_bits(operation(*other), on_two)) << what;
    }
  }

  std::vector<std::unique_ptr<Device>> others_;
};
TIDEKV_ON_EVERY_BACKEND(ThreadCounts);

TEST_P(ThreadCounts, ChangeNoBitOfMatmul) {
  for (const std::int64_t rows : {1, 37, 300}) {
    const HostTensor a = random_.normals(DType::kBF16, rows, 333);
    const HostTensor w = random_.normals(DType::kBF16, 200, 333);
    const HostTensor bias = random_.normals(DType::kF32, 1, 200);
    for (const Phase phase : kPhases) {
      expect_same([&](Device& device) { return device.matmul(a, w, DType::kF32, phase); },
                  "matmul");
      expect_same(
          [&](Device& device) { return device.matmul(a, w, DType::kF32, phase, {.bias = &bias}); },
          "matmul with a bias");
    }
  }
}

TEST_P(ThreadCounts, ChangeNoBitOfGatedMatmul) {
  for (const std::int64_t rows : {1, 37, 300}) {
    const HostTensor a = random_.normals(DType::kBF16, rows, 333);
    const Linear<HostTensor> gate{random_.normals(DType::kBF16, 200, 333)};
    const Linear<HostTensor> up{random_.normals(DType::kBF16, 200, 333)};
    for (const Phase phase : kPhases) {
      expect_same([&](Device& device) { return device.gated_matmul(a, gate, up, phase); },
                  "gated_matmul");
    }
  }
}

TEST_P(ThreadCounts, ChangeNoBitOfProjectedHeads) {
  for (const std::int64_t rows : {1, 37, 300}) {
    const HostTensor a = random_.normals(DType::kBF16, rows, 333);
    HostProjection projection;
    projection.q = {random_.normals(DType::kBF16, 576, 333)};
    projection.k = {random_.normals(DType::kBF16, 192, 333)};
    projection.v = {random_.normals(DType::kBF16, 192, 333)};
    projection.angles = random_.normals(DType::kF32, rows, 64);
    for (const Phase phase : kPhases) {
      const auto heads = [&](Device& device) {
        return project_heads(device, a, projection, phase);
      };
      expect_same([&](Device& device) { return heads(device).q; }, "queries");
      expect_same([&](Device& device) { return heads(device).k; }, "keys");
      expect_same([&](Device& device) { return heads(device).v; }, "values");
    }
  }
}

TEST_P(ThreadCounts, ChangeNoBitOfRowOperations) {
  const HostTensor x = random_.normals(DType::kBF16, 211, 320);
  const HostTensor weight = random_.normals(DType::kF32, 1, 320);
  expect_same([&](Device& device) { return device.rms_norm(x, weight, 1e-5F); }, "rms_norm");
  expect_same([&](Device& device) { return device.swiglu(x, x); }, "swiglu");
}

TEST_P(ThreadCounts, ChangeNoBitOfAttentionAndScores) {
  for (const std::int64_t rows : {1, 32, 260}) {
    const AttentionCase made =
        attention_case(random_, DType::kBF16, {2, 2, 64}, {530, 530}, rows, Inputs::kPlain);
    for (const Phase phase : kPhases) {
      expect_same([&](Device& device) { return device.attend(made.q, made.kv, phase); }, "attend");
    }
    for (const Held held : kAllHeld) {
      const auto attended = [&](Device& device) {
        return device.attend_and_look(made.q, made.kv, held, 1);
      };
      expect_same([&](Device& device) { return attended(device).out; }, "attend that holds");
      expect_same([&](Device& device) { return attended(device).lse; }, "its log-sum-exps");
    }
    expect_same([&](Device& device) { return device.window_lse(made.q, made.kv); }, "window_lse");
    const HostTensor lse = device_.window_lse(made.q, made.kv);
    expect_same(
        [&](Device& device) {
          return device.score_keys(made.q, made.kv, lse, {0, 530});
        },
        "score_keys");
  }
}

TEST_P(ThreadCounts, ChangeNoBitOfDirections) {
  const AttentionCase made =
      attention_case(random_, DType::kBF16, {3, 1, 128}, {900}, 1, Inputs::kOutliers);
  expect_same(
      [&](Device& device) {
        const DeviceKv cache = device.put(made.kv);
        const DeviceTensor anchors = device.garbage(DType::kF32, 3, 128);
        const DeviceTensor scores = device.garbage(DType::kF32, 3, 900);
        device.backend().mean_directions(cache.view(), anchors.view);
        device.backend().score_directions(cache.view(), anchors.view, {0, 900}, scores.view);
        return device.get(scores.view);
      },
      "score_directions");
}

TEST_P(ThreadCounts, ChangeNoBitOfExpectedAttention) {
  constexpr std::int64_t kMomentRows = 6 * 65;  // of six query heads of 64
  const AttentionCase made =
      attention_case(random_, DType::kBF16, {3, 2, 64}, {900}, 200, Inputs::kOutliers);
  const HostTensor freq = inverse_frequencies(64);
  expect_same(
      [&](Device& device) {
        const DeviceKv cache = device.put(made.kv);
        const DeviceTensor on_device = device.put(freq);
        const DeviceTensor angles = device.garbage(DType::kF32, 200, 64);
        const DeviceTensor moments = device.garbage(DType::kF32, kMomentRows, 64);
        const DeviceTensor expected = device.garbage(DType::kF32, kMomentRows, 64);
        const DeviceTensor lse = device.garbage(DType::kF32, 12, 1);
        const DeviceTensor scores = device.garbage(DType::kF32, 3, 900);
        Backend& backend = device.backend();
        backend.rope_angles(on_device.view, Position{0}, angles.view);
        backend.observe_queries(device.put(made.q).view, angles.view, 0, moments.view);
        backend.expect_queries(moments.view, 200, on_device.view, {Position{200}, 512},
                               expected.view);
        backend.expected_lse(cache.view(), expected.view, {0, 900}, lse.view);
        backend.score_expected(cache.view(), expected.view, lse.view, {0, 900}, scores.view);
        return device.get(scores.view);
      },
      "score_expected");
}

}  // namespace
}  // namespace tidekv::conformance
