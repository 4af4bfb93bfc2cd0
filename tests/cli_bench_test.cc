// tidekv bench: lists, formats, and what it measures beside speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "system/program.h"

namespace tidekv::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CliBench : public ProgramTest {
 protected:
  // One quick repetition, without warm-up.
  Outcome bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-r", "1", "--no-warmup", "-t", "1"});
    return needle("bench", arguments);
  }
  json bench_json(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const Outcome outcome = bench(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out);
  }
  std::string refusal(const std::vector<std::string>& arguments) {
    const Outcome outcome = bench(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    EXPECT_THAT(outcome.out, IsEmpty());
    return outcome.err;
  }
};

// One key of every record, in order.
std::vector<std::int64_t> numbers_of(const json& records, const std::string& key) {
  std::vector<std::int64_t> numbers;
  for (const json& record : records) {
    numbers.push_back(record.at(key));
  }
  return numbers;
}

// Cells of a Markdown row without the spaces around them.
std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream stream(row.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) {
    const std::size_t first = cell.find_first_not_of(' ');
    cells.push_back(first == std::string::npos
                        ? ""
                        : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return cells;
}

TEST_F(CliBench, TimesPromptAndGenerationByDefault) {
  const json records = bench_json({});
  EXPECT_THAT(numbers_of(records, "n_prompt"), ElementsAre(512, 0));
  EXPECT_THAT(numbers_of(records, "n_gen"), ElementsAre(0, 128));
}

TEST_F(CliBench, RunsEveryNumberOfCommasRepeatsAndRanges) {
  const json records =
      bench_json({"-n", "0", "-p", "8,16", "-p", "32-40+4", "-p", "64-128*2", "-p", "50-51"});
  EXPECT_THAT(numbers_of(records, "n_prompt"), ElementsAre(8, 16, 32, 36, 40, 64, 128, 50, 51));
}

TEST_F(CliBench, RunsEveryCombinationOnceAndFullWithoutABudget) {
  const json records = bench_json(
      {"-n", "0", "-p", "100", "--method", "full,snapkv,tidekv-snap", "--budget", "40,60"});
  std::vector<std::string> methods;
  for (const json& record : records) {
    methods.push_back(record.at("method"));
  }
  EXPECT_THAT(methods, ElementsAre("full", "snapkv", "snapkv", "tidekv-snap", "tidekv-snap"));
  EXPECT_THAT(numbers_of(records, "budget"), ElementsAre(0, 40, 60, 40, 60));
}

TEST_F(CliBench, WritesTheKeysOfLlamaBenchAndThoseOfMemory) {
  const json records = bench_json({"-n", "0", "-p", "64"});
  ASSERT_EQ(records.size(), 1U);
  for (const char* key :
       {"build_commit",   "build_number",      "cpu_info",      "gpu_info",       "backends",
        "model_filename", "model_type",        "model_size",    "model_n_params", "n_batch",
        "n_ubatch",       "n_threads",         "type_k",        "type_v",         "n_gpu_layers",
        "split_mode",     "main_gpu",          "no_kv_offload", "devices",        "tensor_split",
        "flash_attn",     "use_mmap",          "embeddings",    "n_prompt",       "n_gen",
        "n_depth",        "test_time",         "avg_ns",        "stddev_ns",      "avg_ts",
        "stddev_ts",      "samples_ns",        "samples_ts",    "method",         "budget",
        "peak_bytes",     "process_peak_bytes"}) {
    EXPECT_TRUE(records.at(0).contains(key)) << key;
  }
}

TEST_F(CliBench, AveragesItsSamples) {
  const Outcome outcome = needle("bench", {"-p", "64", "-n", "0", "-r", "3", "-o", "json"});
  const json record = json::parse(outcome.out).at(0);
  const auto ns = record.at("samples_ns").get<std::vector<std::int64_t>>();
  const auto ts = record.at("samples_ts").get<std::vector<double>>();
  ASSERT_EQ(ns.size(), 3U);
  for (std::size_t i = 0; i < ns.size(); ++i) {
    EXPECT_NEAR(ts[i], 64e9 / static_cast<double>(ns[i]), 1e-6 * ts[i]);
  }
  EXPECT_NEAR(record.at("avg_ts"), (ts[0] + ts[1] + ts[2]) / 3, 1e-6 * ts[0]);
}

TEST_F(CliBench, GivesThePeakThatThePlanGives) {
  const json record = bench_json({"-n", "0", "-p", "2000", "--budget", "64"}).at(0);
  const Outcome plan = needle(
      "plan", {"--prompt-len", "2000", "--budget", "64", "-n", "0", "-t", "1", "--report", "json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(record.at("peak_bytes"), json::parse(plan.out).at("peak_bytes"));
  EXPECT_GT(record.at("process_peak_bytes"), record.at("transient_bytes"));
}

TEST_F(CliBench, GeneratesAtADepthAndAfterAPrompt) {
  const json records = bench_json({"-p", "0", "-n", "4", "-d", "0,200", "-pg", "100,8"});
  EXPECT_THAT(numbers_of(records, "n_prompt"), ElementsAre(0, 100, 0));
  EXPECT_THAT(numbers_of(records, "n_gen"), ElementsAre(4, 8, 4));
  EXPECT_THAT(numbers_of(records, "n_depth"), ElementsAre(0, 0, 200));
}

TEST_F(CliBench, SaysThatAPromptHasNoDepth) {
  const Outcome outcome = bench({"-p", "64", "-n", "4", "-d", "100"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("-d is for generated tokens"));
  EXPECT_THAT(outcome.out, HasSubstr("tg4 @ d100"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("pp64")));
}

TEST_F(CliBench, PrintsAMarkdownTable) {
  const Outcome outcome = bench({"-p", "64", "-n", "4", "-pg", "32,4", "--budget", "40,50"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 8U) << outcome.out;
  EXPECT_THAT(cells_of(lines[0]),
              ElementsAre("model", "size", "params", "backend", "threads", "method", "budget",
                          "test", "t/s", "peak", "process peak"));
  EXPECT_THAT(lines[1], ::testing::MatchesRegex("(\\| -+:? )+\\|"));
  std::vector<std::string> tests;
  for (std::size_t i = 2; i < lines.size(); ++i) {
    const std::vector<std::string> cells = cells_of(lines[i]);
    ASSERT_EQ(cells.size(), 11U) << lines[i];
    tests.push_back(cells[7]);
    EXPECT_THAT(cells[8], HasSubstr(" ± "));
  }
  EXPECT_THAT(tests, ElementsAre("pp64", "tg4", "pp32+tg4", "pp64", "tg4", "pp32+tg4"));
}

TEST_F(CliBench, QuotesEveryValueOfCsv) {
  const Outcome outcome = bench({"-p", "16", "-n", "2", "-o", "csv"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 3U);
  const auto commas = std::count(lines[0].begin(), lines[0].end(), ',');
  for (std::size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(std::count(lines[i].begin(), lines[i].end(), '"'), 2 * (commas + 1));
    EXPECT_TRUE(lines[i].starts_with("\"") && lines[i].ends_with("\""));
  }
}

TEST_F(CliBench, WritesOneJsonObjectALineAndTheSecondFormToStderr) {
  const Outcome outcome = bench({"-p", "16,20", "-n", "0", "-o", "jsonl", "-oe", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(json::parse(lines[0]).at("n_prompt"), 16);
  EXPECT_EQ(json::parse(lines[1]).at("n_prompt"), 20);
  EXPECT_EQ(json::parse(outcome.err).at(1).at("n_prompt"), 20);
}

TEST_F(CliBench, SaysHowFarItIs) {
  const Outcome outcome = bench({"-p", "16", "-n", "2", "--progress"});
  EXPECT_THAT(outcome.err, HasSubstr("test 1/2: tidekv-snap pp16"));
  EXPECT_THAT(outcome.err, HasSubstr("test 2/2: tidekv-snap tg2"));
}

TEST_F(CliBench, RefusesListsThatAreNone) {
  EXPECT_THAT(refusal({"-p", "12x"}), HasSubstr("-p: '12x' is not a whole number"));
  EXPECT_THAT(refusal({"-p", "8,"}), HasSubstr("'' is not a whole number"));
  EXPECT_THAT(refusal({"-p", "64-8"}), HasSubstr("ends before it begins"));
  EXPECT_THAT(refusal({"-p", "8-64*1"}), HasSubstr("from 2 to"));
  EXPECT_THAT(refusal({"-p", "0-64*2"}), HasSubstr("stays 0"));
  EXPECT_THAT(refusal({"-p", "8-64+0"}), HasSubstr("from 1 to"));
  EXPECT_THAT(refusal({"-p", "1-9999"}), HasSubstr("more than 1,000 numbers"));
  EXPECT_THAT(refusal({"-p", "1-500", "--budget", "1-500", "--chunk", "1-500"}),
              HasSubstr("more than 10,000 tests"));
  EXPECT_THAT(refusal({"-n", "-1"}), HasSubstr("'-1' is not a whole number"));
  EXPECT_THAT(refusal({"-pg", "512"}), HasSubstr("two numbers"));
  EXPECT_THAT(refusal({"--method", "full,half"}), HasSubstr("'half' is not one of"));
  EXPECT_THAT(refusal({"-o", "sql"}), HasSubstr("'sql' is not one of md, csv, json, jsonl"));
  EXPECT_THAT(refusal({"-p", "0", "-n", "0"}), HasSubstr("nothing to run"));
}

TEST_F(CliBench, NamesFlagsOfLlamaBenchThatItHasNot) {
  EXPECT_THAT(refusal({"-ngl", "99"}), HasSubstr("-ngl is not a flag here"));
  EXPECT_THAT(refusal({"-mg", "0"}), HasSubstr("-mg is not a flag here"));
  EXPECT_THAT(refusal({"-ub", "512"}), HasSubstr("--chunk"));
  EXPECT_THAT(refusal({"--numa", "distribute"}), HasSubstr("--numa is not a flag"));
}

TEST_F(CliBench, RefusesWhatTheContextCannotHoldBeforeItRunsAnything) {
  const Outcome outcome = bench({"-p", "16,1M", "-n", "0", "-o", "json"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("pp1048576: the prompt has 1048576 tokens"));
  EXPECT_TRUE(json::parse(outcome.out).empty());
}

TEST_F(CliBench, NeedsAModel) {
  EXPECT_THAT(run({"bench"}).err, HasSubstr("no model"));
  EXPECT_EQ(run({"bench", "-m", path("a")}).exit_code, 3);
}

}  // namespace
}  // namespace tidekv::testing
