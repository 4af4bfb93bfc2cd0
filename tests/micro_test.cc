// The program bench/micro: it runs, and what it prints can be read. No speed is asserted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "system/program.h"

namespace tidekv::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

class Micro : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    use_program("micro");
  }
};

// Operations in the names, which stand before the first slash.
std::set<std::string> operations_in(const std::vector<std::string>& names) {
  std::set<std::string> operations;
  for (const std::string& name : names) {
    operations.insert(name.substr(0, name.find('/')));
  }
  return operations;
}

// The mandatory operations, from the interface itself.
std::vector<std::string> operations_of_the_interface() {
  const std::string header = read_file(TIDEKV_SOURCE_DIR "/src/backend/backend.h");
  const std::regex declaration(R"(virtual void do_(\w+)\()");
  std::vector<std::string> operations;
  for (std::sregex_iterator at(header.begin(), header.end(), declaration), end; at != end; ++at) {
    if ((*at)[1] != "release") {
      operations.push_back((*at)[1]);
    }
  }
  return operations;
}

TEST_F(Micro, HasACaseForEveryOperationOfTheBackend) {
  const Outcome outcome = run({"--list"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> wanted = operations_of_the_interface();
  EXPECT_GE(wanted.size(), 17U);
  EXPECT_THAT(operations_in(lines_of(outcome.out)), IsSupersetOf(wanted));
}

// The small model's smallest case of each operation, once.
std::vector<std::string> smallest_of_each() {
  std::vector<std::string> arguments = {"--seconds", "0", "-t", "2"};
  for (const char* filter : {"matmul/m64/576x192/bf16*",
                             "matmul_decode/m1/576x192/bf16*",
                             "gated_matmul/m256/576x1536/bf16*",
                             "attend_decode/q1/k1024/d90*",
                             "attend/q512/k8192/d64h9kv3/bf16",
                             "attend_quantised/q1/k1024/d64*2bit",
                             "quantise_rows/*2bit*",
                             "causal_mask*bf16",
                             "window_lse*h9*bf16",
                             "score_keys*h9*bf16",
                             "pool_scores*h9",
                             "topk*kv3",
                             "average_units*kv3",
                             "count_ids*h9*bf16",
                             "keep_rows*h9*bf16",
                             "slots_to_positions*h9*bf16",
                             "mean_directions*h9*bf16",
                             "score_directions*h9*bf16",
                             "score_key_norms*h9*bf16",
                             "observe_queries*h9*bf16",
                             "expect_queries*h9*bf16",
                             "expected_lse*h9*bf16",
                             "score_expected*h9*bf16",
                             "gather_rows*h9*bf16",
                             "rms_norm/m512/576",
                             "rope_angles*d64",
                             "swiglu/m512/1536",
                             "embed/m512/576",
                             "project_heads/m512/576/*bf16",
                             "copy/m512/576",
                             "load/m512/576"}) {
    arguments.insert(arguments.end(), {"--filter", filter});
  }
  return arguments;
}

TEST_F(Micro, PrintsEveryOperationAsJson) {
  std::vector<std::string> arguments = smallest_of_each();
  arguments.insert(arguments.end(), {"-o", "json"});
  const Outcome outcome = run(arguments);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.at("threads"), 2);
  EXPECT_FALSE(report.at("peak_loops").empty());
  std::vector<std::string> names;
  for (const json& result : report.at("results")) {
    names.push_back(result.at("name"));
    EXPECT_GT(result.at("call_seconds").at("median"), 0.0) << names.back();
    const json& flops = result.at("flops");
    const json& bytes = result.at("bytes");
    EXPECT_FALSE(flops.is_null() && bytes.is_null()) << names.back();
    for (const json* usage : {&flops, &bytes}) {
      if (!usage->is_null()) {
        EXPECT_GT(usage->at("share").at("median"), 0.0) << names.back();
        EXPECT_GT(usage->at("limit_per_second").at("min"), 0.0) << names.back();
      }
    }
  }
  EXPECT_THAT(operations_in(names), IsSupersetOf(operations_of_the_interface()));
}

TEST_F(Micro, PrintsARowForEachCaseAsMarkdown) {
  const Outcome outcome = run({"--filter", "topk_take", "--seconds", "0", "-t", "1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 6U) << outcome.out;  // the peak, a blank line, the head, two cases
  EXPECT_THAT(lines[4], HasSubstr("| topk_take/best1024/kv3 |"));
  for (std::size_t i = 2; i < lines.size(); ++i) {
    EXPECT_EQ(std::count(lines[i].begin(), lines[i].end(), '|'), 9) << lines[i];
  }
}

TEST_F(Micro, RefusesAFilterThatMatchesNothing) {
  const Outcome outcome = run({"--filter", "matmul/m3"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("--list shows all names"));
}

}  // namespace
}  // namespace tidekv::testing
