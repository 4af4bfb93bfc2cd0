// Allocation, its account, and its failure, as every backend must have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "conformance/device.h"
#include "conformance/projected_heads.h"
#include "memory/plan.h"

// A sanitizer's allocator returns null, as the system's does, instead of stopping the program.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace tidekv::conformance {
namespace {

using testing::HasSubstr;

class Memory : public BackendTest {
 protected:
  std::unique_ptr<Backend> create(std::int64_t fail_allocation = -1) {
    return GetParam()->create({.pool = &pool_, .fail_allocation = fail_allocation});
  }

  static Buffer allocate(Backend& backend, Component component, std::int64_t bytes) {
    auto buffer = backend.allocate({{component, bytes}});
    EXPECT_TRUE(buffer.ok());
    return std::move(buffer).value();
  }

  // `imported` holds the numbers of `w`, with memory beside it that ends the program when touched.
  void expect_fused_products_read_no_byte_beside(DeviceView imported, const HostTensor& w) {
    const HostTensor a = random_.normals(DType::kBF16, 3, w.cols());
    const DeviceTensor left = device_.put(a);
    for (const Phase phase : kPhases) {
      const DeviceTensor out = device_.garbage(DType::kBF16, 3, w.rows());
      backend().gated_matmul(left.view, {imported}, {imported}, out.view, phase);
      ASSERT_TRUE(same_bits(device_.get(out.view), device_.gated_matmul(a, {w}, {w}, phase)));

      HostProjection projection{.q = {w}, .k = {w}, .v = {w}};
      projection.angles = random_.normals(DType::kF32, 3, w.rows());
      const DeviceTensor angles = device_.put(projection.angles);
      const DeviceTensor keys = device_.garbage(DType::kBF16, 3, w.rows());
      const DeviceTensor values = device_.garbage(DType::kBF16, 3, w.rows());
      const HeadSpan span{.offset = 0, .len = 0, .capacity = 3};
      backend().project_heads(left.view,
                              {.q = {imported},
                               .k = {imported},
                               .v = {imported},
                               .angles = angles.view,
                               .phase = phase},
                              out.view, {keys.view, values.view, {&span, 1}});
      const Heads<HostTensor> wanted = project_heads(device_, a, projection, phase);
      ASSERT_TRUE(same_bits(device_.get(out.view), wanted.q));
      ASSERT_TRUE(same_bits(device_.get(keys.view), wanted.k));
      ASSERT_TRUE(same_bits(device_.get(values.view), wanted.v));
    }
  }

  ThreadPool pool_{1};
};
TIDEKV_ON_EVERY_BACKEND(Memory);

TEST_P(Memory, AllocationChargesEveryComponentAndReleaseReturnsThem) {
  const auto own = create();
  {
    auto buffer = own->allocate({{Component::kCompactCache, 1000}, {Component::kDecodeGrowth, 24}});
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(buffer.value().num_bytes(), 1024);
    EXPECT_EQ(own->accountant().live()[Component::kCompactCache], 1000);
    EXPECT_EQ(own->accountant().live()[Component::kDecodeGrowth], 24);
    EXPECT_EQ(own->accountant().live_bytes(), 1024);
  }
  EXPECT_EQ(own->accountant().live_bytes(), 0);
  EXPECT_EQ(own->accountant().peak_bytes(), 1024);
}

TEST_P(Memory, AMovedBufferIsReleasedOnce) {
  const auto own = create();
  Buffer first = allocate(*own, Component::kFullKv, 100);
  Buffer second = allocate(*own, Component::kFullKv, 30);
  Buffer third = std::move(first);
  EXPECT_EQ(own->accountant().live_bytes(), 130);
  third = std::move(second);  // releases the hundred bytes
  EXPECT_EQ(own->accountant().live_bytes(), 30);
  third = Buffer();
  EXPECT_EQ(own->accountant().live_bytes(), 0);
}

TEST_P(Memory, RetagRenamesOnlyTheChargesOfThatComponent) {
  const auto own = create();
  {
    auto buffer = own->allocate({{Component::kFullKv, 50}, {Component::kDecodeGrowth, 14}});
    ASSERT_TRUE(buffer.ok());
    buffer.value().retag(Component::kFullKv, Component::kCompactCache);
    EXPECT_EQ(own->accountant().live()[Component::kFullKv], 0);
    EXPECT_EQ(own->accountant().live()[Component::kCompactCache], 50);
    EXPECT_EQ(own->accountant().live()[Component::kDecodeGrowth], 14);
  }
  EXPECT_EQ(own->accountant().live_bytes(), 0);
  EXPECT_EQ(own->accountant().live()[Component::kCompactCache], 0);
}

TEST_P(Memory, ImportedWeightsAreCharged) {
  const auto own = create();
  const HostTensor w = random_.normals(DType::kBF16, 7, 10);
  ASSERT_TRUE(own->import_weights(w.view()).ok());
  EXPECT_EQ(own->accountant().live()[Component::kWeights], 140);
}

TEST_P(Memory, BuffersOfNoBytesAreFine) {
  const auto own = create();
  const Buffer empty = allocate(*own, Component::kCompressionTemp, 0);
  EXPECT_TRUE(static_cast<bool>(empty));
  EXPECT_EQ(own->accountant().live_bytes(), 0);
}

TEST_P(Memory, AnInjectedFailureIsAResultAndLeavesTheLedgerAsItWas) {
  for (const std::int64_t failing : {0, 1, 3}) {
    const auto own = create(failing);
    std::vector<Buffer> buffers;
    for (std::int64_t i = 0; i < failing; ++i) {
      buffers.push_back(allocate(*own, Component::kActivations, 100));
    }
    const ComponentBytes live = own->accountant().live();
    const std::int64_t events = own->accountant().num_events();
    const auto refused = own->allocate({{Component::kLogits, 77}, {Component::kFullKv, 1}});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
    EXPECT_THAT(refused.error().message, HasSubstr("78"));
    EXPECT_THAT(refused.error().message, HasSubstr("logits"));
    EXPECT_EQ(own->accountant().live(), live);
    EXPECT_EQ(own->accountant().num_events(), events);
    EXPECT_EQ(allocate(*own, Component::kLogits, 77).num_bytes(), 77);
  }
}

TEST_P(Memory, MoreThanTheMachineHasIsAResultAndLeavesTheLedgerAsItWas) {
  const auto own = create();
  const auto refused = own->allocate({{Component::kFullKv, std::int64_t{1} << 60}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(own->accountant().live_bytes(), 0);
  EXPECT_EQ(own->accountant().peak_bytes(), 0);
  EXPECT_EQ(allocate(*own, Component::kFullKv, 64).num_bytes(), 64);
}

TEST_P(Memory, AReservationTheMachineCannotGiveIsAResult) {
  const auto own = create();
  MemoryPlan plan;
  plan.arena_bytes = std::int64_t{1} << 60;
  plan.allocations = {{.bytes = plan.arena_bytes - 64, .offset = 0}};
  const Status refused = own->reserve(plan);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(own->reserved_bytes(), 0);
}

// An allocation that happens while a plan is spent, with a pattern of its own in its bytes.
struct Live {
  std::size_t index;
  Buffer buffer;
};

HostTensor pattern(std::size_t index, std::int64_t bytes) {
  HostTensor tensor(DType::kF16, 1, bytes / 2);
  std::fill(tensor.bytes().begin(), tensor.bytes().end(), static_cast<std::byte>(index * 37 + 1));
  return tensor;
}

// Events in time order, each an allocation of random size or the release of a random live one.
std::vector<TracedAllocation> random_trace(Random& random) {
  std::vector<TracedAllocation> trace;
  std::vector<std::size_t> live;
  for (std::int64_t event = 0; event < 120; ++event) {
    if (live.empty() || random.below(9) < 5) {
      live.push_back(trace.size());
      trace.push_back({.bytes = 2 * random.below(3000), .birth = event});
    } else {
      const auto which =
          static_cast<std::size_t>(random.below(static_cast<std::int64_t>(live.size())));
      trace[live[which]].death = event;
      live[which] = live.back();
      live.pop_back();
    }
  }
  return trace;
}

// Spends the plan in the trace's order. Every buffer is written whole when it is born and still
// holds its pattern when it dies.
TEST_P(Memory, AllocationsOfAPlanNeverTouchOneAnother) {
  for (int trial = 0; trial < 10; ++trial) {
    const std::vector<TracedAllocation> trace = random_trace(random_);
    const MemoryPlan plan = place_allocations(trace);
    const auto own = create();
    ASSERT_TRUE(own->reserve(plan).ok());
    EXPECT_EQ(own->reserved_bytes(), plan.arena_bytes);
    std::vector<Live> live;
    const auto holds_its_pattern = [&](const Live& one) {
      const std::int64_t bytes = trace[one.index].bytes;
      HostTensor got(DType::kF16, 1, bytes / 2);
      own->download(one.buffer.view(DType::kF16, 1, bytes / 2), got.bytes());
      return std::equal(got.bytes().begin(), got.bytes().end(),
                        pattern(one.index, bytes).bytes().begin());
    };
    std::size_t next = 0;
    for (std::int64_t event = 0; event < 120; ++event) {
      if (next < trace.size() && trace[next].birth == event) {
        live.push_back({next, allocate(*own, Component::kActivations, trace[next].bytes)});
        const DeviceView view = live.back().buffer.view(DType::kF16, 1, trace[next].bytes / 2);
        own->upload(pattern(next, trace[next].bytes).bytes(), view);
        ++next;
        continue;
      }
      const auto dying = std::find_if(live.begin(), live.end(), [&](const Live& one) {
        return trace[one.index].death == event;
      });
      ASSERT_NE(dying, live.end());
      ASSERT_TRUE(holds_its_pattern(*dying)) << "trial " << trial << ", event " << event;
      live.erase(dying);
    }
    EXPECT_TRUE(std::all_of(live.begin(), live.end(), holds_its_pattern)) << "trial " << trial;
  }
}

// Results are undefined from then on; the account is not.
TEST_P(Memory, ACancelledRequestSaysSoAndKeepsItsAccount) {
  std::atomic<bool> cancel{false};
  const auto own = GetParam()->create({.pool = &pool_, .cancel = &cancel});
  EXPECT_FALSE(own->cancelled());
  const HostTensor x = random_.normals(DType::kF32, 8, 16);
  {
    const Buffer buffer = allocate(*own, Component::kActivations, 512);
    const DeviceView view = buffer.view(DType::kF32, 8, 16);
    own->upload(x.bytes(), view);
    cancel = true;
    own->swiglu(view, view, view);
    cancel = false;
    EXPECT_TRUE(own->cancelled());
    EXPECT_TRUE(own->synchronize().ok());
    EXPECT_EQ(own->accountant().live_bytes(), 512);
  }
  EXPECT_EQ(own->accountant().live_bytes(), 0);
}

// Memory that ends, and begins, where the next byte may not be touched, as a mapped file may.
class GuardedPages {
 public:
  explicit GuardedPages(std::int64_t bytes) : page_(::sysconf(_SC_PAGESIZE)) {
    inner_ = (bytes + page_ - 1) / page_ * page_;
    void* mapped = ::mmap(nullptr, static_cast<std::size_t>(inner_ + 2 * page_), PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    base_ = static_cast<std::byte*>(mapped);
    EXPECT_EQ(::mprotect(first(), static_cast<std::size_t>(inner_), PROT_READ | PROT_WRITE), 0);
  }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;
  ~GuardedPages() { ::munmap(base_, static_cast<std::size_t>(inner_ + 2 * page_)); }

  std::byte* first() { return base_ + page_; }
  std::byte* last(std::int64_t bytes) { return first() + inner_ - bytes; }

 private:
  std::int64_t page_;
  std::int64_t inner_ = 0;
  std::byte* base_ = nullptr;
};

TEST_P(Memory, NoOperationReadsAByteBesideTheWeights) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const std::int64_t rows : {1, 5, 17, 33}) {
      for (const std::int64_t cols : {1, 3, 15, 17, 31, 33, 70, 257}) {
        const HostTensor w = random_.normals(dtype, rows, cols);
        const auto bytes = static_cast<std::int64_t>(w.bytes().size());
        GuardedPages pages(bytes);
        for (std::byte* const at : {pages.first(), pages.last(bytes)}) {
          std::memcpy(at, w.bytes().data(), w.bytes().size());
          const auto imported = backend().import_weights({at, dtype, rows, cols});
          ASSERT_TRUE(imported.ok());
          const DeviceTensor a = device_.put(random_.normals(DType::kBF16, 3, cols));
          const DeviceTensor product = device_.garbage(DType::kF32, 3, rows);
          backend().matmul(a.view, imported.value(), product.view, {});
          const DeviceTensor normed = device_.garbage(DType::kBF16, 3, cols);
          backend().rms_norm(a.view, imported.value().rows_at(rows - 1, 1), 1e-5F, normed.view);
          HostTensor ids(DType::kI32, 1, 3);
          ids.set(0, 1, static_cast<double>(rows - 1));
          const DeviceTensor embedded = device_.garbage(DType::kBF16, 3, cols);
          backend().embed(imported.value(), device_.put(ids).view, embedded.view);
          ASSERT_TRUE(same_bits(device_.get(product.view),
                                device_.matmul(device_.get(a.view), w, DType::kF32)));
          expect_fused_products_read_no_byte_beside(imported.value(), w);
        }
      }
    }
  }
}

TEST_P(Memory, NoOperationReadsAByteBesideQuantisedWeights) {
  for (const DType dtype : {DType::kQ80, DType::kQ40, DType::kQ41, DType::kQ50, DType::kQ51,
                            DType::kQ4K, DType::kQ5K, DType::kQ6K}) {
    for (const std::int64_t rows : {1, 5, 33}) {
      const std::int64_t len = traits_of(dtype).block_len;
      for (const std::int64_t cols : {len, 3 * len}) {
        const HostTensor w = random_.blocks(dtype, rows, cols);
        const auto bytes = static_cast<std::int64_t>(w.bytes().size());
        GuardedPages pages(bytes);
        for (std::byte* const at : {pages.first(), pages.last(bytes)}) {
          std::memcpy(at, w.bytes().data(), w.bytes().size());
          const auto imported = backend().import_weights({at, dtype, rows, cols});
          ASSERT_TRUE(imported.ok());
          const DeviceTensor a = device_.put(random_.normals(DType::kBF16, 3, cols));
          for (const Phase phase : {Phase::kPrefill, Phase::kDecode}) {
            const DeviceTensor product = device_.garbage(DType::kF32, 3, rows);
            backend().matmul(a.view, imported.value(), product.view, {.phase = phase});
            ASSERT_TRUE(same_bits(device_.get(product.view),
                                  device_.matmul(device_.get(a.view), w, DType::kF32, phase)));
          }
          expect_fused_products_read_no_byte_beside(imported.value(), w);
          HostTensor ids(DType::kI32, 1, 3);
          ids.set(0, 1, static_cast<double>(rows - 1));
          const DeviceTensor embedded = device_.garbage(DType::kBF16, 3, cols);
          backend().embed(imported.value(), device_.put(ids).view, embedded.view);
          ASSERT_TRUE(same_bits(device_.get(embedded.view), device_.embed(w, ids, DType::kBF16)));
        }
      }
    }
  }
}

class MemoryDeathTest : public Memory {};
TIDEKV_ON_EVERY_BACKEND(MemoryDeathTest);

TEST_P(MemoryDeathTest, StopsAtAnAllocationThatIsNotThePlans) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto own = create();
  const std::vector<TracedAllocation> trace = {{.bytes = 100, .birth = 0}};
  ASSERT_TRUE(own->reserve(place_allocations(trace)).ok());
  EXPECT_DEATH(static_cast<void>(own->allocate({{Component::kLogits, 101}})), "check failed");
  const Buffer planned = allocate(*own, Component::kLogits, 100);
  EXPECT_DEATH(static_cast<void>(own->allocate({{Component::kLogits, 1}})), "check failed");
}

}  // namespace
}  // namespace tidekv::conformance
