#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tidekv/memory_report.h"

namespace tidekv {
namespace {

PlanReport example_plan() {
  PlanReport plan;
  plan.method = "tidekv-snap";
  plan.prompt_len = 300;
  plan.chunk_len = 128;
  plan.budget = 64;
  plan.context_len = 1000;
  plan.max_new_tokens = 8;
  plan.memory = {.peak_bytes = 100,
                 .weights_bytes = 40,
                 .final_cache_bytes = 25,
                 .transient_bytes = 35,
                 .reserved_bytes = 70,
                 .components = {{"weights", 40}, {"full_kv", 60}}};
  plan.layers = {{64, 300, {}}, {32, 300, {}}};
  return plan;
}

RunReport example_run() {
  RunReport run;
  run.plan = example_plan();
  run.memory = run.plan.memory;
  run.layers = run.plan.layers;
  run.tokens = {5, 7};
  run.generated_tokens = 2;
  run.text = "ok";
  return run;
}

TEST(ReportJson, HoldsTheNumbersOfAPlan) {
  const auto json = nlohmann::json::parse(to_json(example_plan()));
  EXPECT_EQ(json.at("schema_version"), 1);
  EXPECT_EQ(json.at("method"), "tidekv-snap");
  EXPECT_EQ(json.at("prompt_len"), 300);
  EXPECT_EQ(json.at("chunk_len"), 128);
  EXPECT_EQ(json.at("budget"), 64);
  EXPECT_EQ(json.at("peak_bytes"), 100);
  EXPECT_EQ(json.at("weights_bytes"), 40);
  EXPECT_EQ(json.at("final_cache_bytes"), 25);
  EXPECT_EQ(json.at("transient_bytes"), 35);
  EXPECT_EQ(json.at("reserved_bytes"), 70);
  EXPECT_EQ(json.at("components"), (nlohmann::json{{"weights", 40}, {"full_kv", 60}}));
  EXPECT_EQ(json.at("layers").at(1), (nlohmann::json{{"kept", 32}, {"total", 300}}));
}

TEST(ReportJson, GivesARunEveryKeyOfAPlan) {
  const auto plan = nlohmann::json::parse(to_json(example_plan()));
  const auto run = nlohmann::json::parse(to_json(example_run()));
  for (const auto& [key, value] : plan.items()) {
    EXPECT_TRUE(run.contains(key)) << key;
  }
  EXPECT_GT(run.size(), plan.size());
}

TEST(ReportJson, ReportsWhatTheRunMeasuredAndThePlanBesideIt) {
  RunReport run = example_run();
  run.memory.peak_bytes = 101;
  const auto json = nlohmann::json::parse(to_json(run));
  EXPECT_EQ(json.at("peak_bytes"), 101);
  EXPECT_EQ(json.at("planned_peak_bytes"), 100);
}

TEST(ReportJson, WritesDigestsAsSixteenHexDigitsOnlyWhenAsked) {
  RunReport run = example_run();
  EXPECT_FALSE(nlohmann::json::parse(to_json(run)).contains("digests"));
  run.digests = {{.hidden = 0xfedcba9876543210U, .positions = 1, .cache = 0}};
  const auto digest = nlohmann::json::parse(to_json(run)).at("digests").at(0);
  EXPECT_EQ(digest.at("hidden"), "fedcba9876543210");
  EXPECT_EQ(digest.at("positions"), "0000000000000001");
  EXPECT_EQ(digest.at("cache"), "0000000000000000");
}

TEST(ReportJson, StaysValidWhenTheTextIsNotUtf8) {
  RunReport run = example_run();
  run.text =
      "a\xff"
      "b";
  EXPECT_EQ(nlohmann::json::parse(to_json(run)).at("text"),
            "a\xef\xbf\xbd"
            "b");
}

}  // namespace
}  // namespace tidekv
