// Out of memory is a result: every device allocation and every operator new fails once; the request
// ends with a clean error, memory returns to where it was, and the next request works.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/sweep_runner.h"
#include "system/allocation_hooks.h"
#include "system/model_run.h"
#include "tidekv/engine.h"

namespace tidekv::testing {
namespace {

const std::string kToyFolder = std::string(TIDEKV_SOURCE_DIR) + "/tests/data/models/toy2";

Request toy_request() {
  Request request;
  request.prompt = random_prompt(150, 259, 11);
  request.prefill.budget = 64;
  request.prefill.chunk_len = 40;
  request.prefill.max_new_tokens = 3;
  request.sampling.temperature = 0;
  request.ignore_eos = true;
  return request;
}

Engine load_toy() {
  Result<Engine> engine = Engine::load(kToyFolder, {.num_threads = 2});
  if (!engine.ok()) {
    ADD_FAILURE() << engine.error().message;
    std::abort();
  }
  return std::move(engine).value();
}

void expect_every_device_allocation_may_fail(const Request& request) {
  const ModelFolder model("tests/data/models/toy2");
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(kToyFolder).value();
  ThreadPool pool(2);
  for (const BackendEntry* backend : available_backends()) {
    RunContext context{model.context(*backend, 2), tokenizer.get(), &pool};
    const Result<RunReport> expected = run_request(context, request, {});
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    std::int64_t failures = 0;
    for (std::int64_t nth = 0;; ++nth) {
      context.fail_allocation = nth;
      const std::int64_t before = live_allocations();
      bool ok = false;
      {
        const Result<RunReport> report = run_request(context, request, {});
        ok = report.ok();
        if (!ok) {
          EXPECT_EQ(report.error().code, ErrorCode::kOutOfMemory);
          ++failures;
        }
      }
      EXPECT_EQ(live_allocations(), before) << "allocation " << nth;
      context.fail_allocation = -1;
      const Result<RunReport> next = run_request(context, request, {});
      ASSERT_TRUE(next.ok());
      EXPECT_EQ(next.value().tokens, expected.value().tokens) << "after failure " << nth;
      if (ok) {
        break;
      }
    }
    EXPECT_GT(failures, 30);
  }
}

TEST(FailureInjection, EveryDeviceAllocationMayFail) {
  for (const char* method : {"tidekv-snap", "block-ada", "keydiff", "kivi-2", "headinfer"}) {
    SCOPED_TRACE(method);
    Request request = toy_request();
    request.prefill.method = method;
    request.prefill.kv_residual_len = 64;
    expect_every_device_allocation_may_fail(request);
  }
  SCOPED_TRACE("eager");
  Request request = toy_request();
  request.prefill.attention = AttentionImplementation::kEager;
  expect_every_device_allocation_may_fail(request);
}

TEST(FailureInjection, EveryDeviceAllocationOfASweepMayFail) {
  const ModelFolder model("tests/data/models/toy2");
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(kToyFolder).value();
  ThreadPool pool(2);
  RunContext context{model.context(*available_backends().front(), 2), tokenizer.get(), &pool};
  const Request one = toy_request();
  SweepRequest request;
  request.prompt = one.prompt;
  request.prefill = one.prefill;
  request.sampling = one.sampling;
  request.targets = {
      {"tidekv-snap", 64}, {"full", 64}, {"tova", 40}, {"pyramidkv", 140}, {"kivi-4", 64}};
  ASSERT_TRUE(run_sweep(context, request, {}).ok());
  std::int64_t failures = 0;
  for (bool ok = false; !ok; ++failures) {
    context.fail_allocation = failures;
    const std::int64_t before = live_allocations();
    {
      const Result<SweepReport> report = run_sweep(context, request, {});
      ok = report.ok();
      EXPECT_TRUE(ok || report.error().code == ErrorCode::kOutOfMemory);
    }
    EXPECT_EQ(live_allocations(), before) << "allocation " << failures;
  }
  EXPECT_GT(failures, 50);
}

void expect_every_operator_new_may_fail(const Request& request) {
  const Engine engine = load_toy();
  const std::vector<std::int32_t> expected = engine.generate(request, {}).value().tokens;
  std::int64_t failures = 0;
  for (std::int64_t nth = 0;; ++nth) {
    const std::int64_t before = live_allocations();
    bool happened = false;
    {
      NewFailsAt injection(nth);
      const Result<RunReport> report = engine.generate(request, {});
      happened = injection.happened();
      if (report.ok()) {  // the standard library's sort goes on without its extra buffer
        ASSERT_EQ(report.value().tokens, expected) << "operator new " << nth;
      } else {
        ASSERT_TRUE(happened);
        ASSERT_EQ(report.error().code, ErrorCode::kOutOfMemory);
        ++failures;
      }
    }
    ASSERT_EQ(live_allocations(), before) << "operator new " << nth;
    if (!happened) {
      break;
    }
  }
  EXPECT_GT(failures, 50);
  EXPECT_EQ(engine.generate(request, {}).value().tokens, expected);
}

TEST(FailureInjection, EveryOperatorNewOfARequestMayFail) {
  for (const char* method : {"tidekv-snap", "keydiff", "kivi-4", "headinfer"}) {
    SCOPED_TRACE(method);
    Request request = toy_request();
    request.prefill.method = method;
    expect_every_operator_new_may_fail(request);
  }
}

TEST(FailureInjection, EveryOperatorNewOfLoadingMayFail) {
  std::int64_t failures = 0;
#ifdef NDEBUG
  constexpr std::int64_t kGrowth = INT64_MAX;  // every one
#else
  constexpr std::int64_t kGrowth = 200;  // slow builds: the first 200, then ever longer steps
#endif
  for (std::int64_t nth = 0;; nth += 1 + nth / kGrowth) {
    const std::int64_t before = live_allocations();
    bool happened = false;
    {
      NewFailsAt injection(nth);
      const Result<Engine> engine = Engine::load(kToyFolder, {.num_threads = 2});
      happened = injection.happened();
      if (happened) {
        ASSERT_FALSE(engine.ok()) << "operator new " << nth;
        ASSERT_EQ(engine.error().code, ErrorCode::kOutOfMemory) << engine.error().message;
        ++failures;
      }
    }
    ASSERT_EQ(live_allocations(), before) << "operator new " << nth;
    if (!happened) {
      break;
    }
  }
  EXPECT_GT(failures, 200);
  EXPECT_EQ(load_toy().generate(toy_request(), {}).value().generated_tokens, 3);
}

#ifdef TIDEKV_HOOK_MALLOC
// Where heads or units compete for places the host decides between them, in lists of its own.
bool decides_on_the_host(const Method& method) {
  const ScoreRecipe recipe = method.selector->create({})->score_recipe(700);
  return recipe.even_share < 1 || recipe.unit_len > 1;
}

// After plan and reserve nothing in the hot path can fail to allocate, because nothing allocates.
TEST(FailureInjection, PrefillAllocatesNothingOutsideItsReservation) {
  const ModelFolder model("tests/data/models/toy2");
  const std::vector<std::int32_t> prompt = random_prompt(700, 259, 11);
  for (const BackendEntry* backend : available_backends()) {
    for (const Method& entry : all_methods()) {
      const std::string& method = entry.name;
      if (decides_on_the_host(entry)) {
        continue;
      }
      const ModelContext context = model.context(*backend, 2);
      PrefillOptions options;
      options.method = method;
      // Every other one holds scores.
      options.attention = method.size() % 2 == 0 ? AttentionImplementation::kEager
                                                 : AttentionImplementation::kFlash;
      options.budget = 64;
      options.chunk_len = 100;
      const ResolvedRequest request = resolve_request(context, options, 700).value();
      const Plan plan = make_plan(context, request, false).value();
      ThreadPool pool(2);
      const auto device = backend->create({.pool = &pool});
      const auto session = Session::create(*device, request.session).value();
      ASSERT_TRUE(device->reserve(plan.memory).ok());
      start_counting();
      const Status status = session->prefill(prompt);
      const AllocationCounts counts = stop_counting();
      ASSERT_TRUE(status.ok());
      EXPECT_EQ(counts.operator_new, 0) << method;
      EXPECT_EQ(counts.malloc, 0) << method;
      EXPECT_EQ(counts.mmap, 0) << method;
    }
  }
}

// Otherwise the test above could pass with hooks that count nothing.
TEST(FailureInjection, HooksCount) {
  start_counting();
  std::vector<int> vector(1000);
  void* data = std::malloc(100);
  vector[0] = data != nullptr ? 1 : 0;
  std::free(data);
  const AllocationCounts counts = stop_counting();
  EXPECT_GE(counts.operator_new, vector[0]);
  EXPECT_GE(counts.malloc, 1 + vector[0]);
}
#endif

}  // namespace
}  // namespace tidekv::testing
