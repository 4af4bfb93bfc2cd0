// Which backend runs, and what is said where the wanted one cannot.
#include "backend/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace tidekv {
namespace {

class ChooseBackend : public testing::Test {
 protected:
  ChooseBackend() { ::unsetenv("TIDEKV_BACKEND"); }
  ~ChooseBackend() override { ::unsetenv("TIDEKV_BACKEND"); }
  ChooseBackend(const ChooseBackend&) = delete;
  ChooseBackend& operator=(const ChooseBackend&) = delete;

  static Result<const BackendEntry*> choose(std::string_view name) {
    EXPECT_EQ(::setenv("TIDEKV_BACKEND", std::string(name).c_str(), 1), 0);
    return choose_backend();
  }
};

TEST_F(ChooseBackend, TakesTheFirstThatSuitsIfNoneIsNamed) {
  const auto entries = backend_entries();
  const auto first = std::find_if(entries.begin(), entries.end(),
                                  [](const BackendEntry& entry) { return entry.suits(); });
  ASSERT_NE(first, entries.end());
  for (const auto& chosen : {choose_backend(), choose("")}) {
    ASSERT_TRUE(chosen.ok());
    EXPECT_EQ(chosen.value()->name, first->name);
  }
}

TEST_F(ChooseBackend, TakesWiderVectorsBeforeNarrowerOnes) {
  const auto entries = backend_entries();
  const auto place = [&](std::string_view name) {
    return std::find_if(entries.begin(), entries.end(),
                        [&](const BackendEntry& entry) { return entry.name == name; }) -
           entries.begin();
  };
  EXPECT_LT(place("cpu-avx512"), place("cpu-avx2"));
  EXPECT_LT(place("cpu-avx2"), place("cpu-portable"));
  EXPECT_LT(place("cpu-portable"), static_cast<std::ptrdiff_t>(entries.size()));
}

TEST_F(ChooseBackend, TakesTheNamedOneWhereItRunsAndListsThoseThatDoElsewhere) {
  for (const BackendEntry& entry : backend_entries()) {
    const auto chosen = choose(entry.name);
    ASSERT_EQ(chosen.ok(), entry.available()) << entry.name;
    if (chosen.ok()) {
      EXPECT_EQ(chosen.value()->name, entry.name);
    } else {
      EXPECT_THAT(chosen.error().message, testing::HasSubstr("'" + std::string(entry.name) + "'"));
    }
  }
  const auto unknown = choose("cpu-avx");
  ASSERT_FALSE(unknown.ok());
  for (const BackendEntry& entry : backend_entries()) {
    EXPECT_EQ(unknown.error().message.find(" " + std::string(entry.name)) != std::string::npos,
              entry.available())
        << unknown.error().message;
  }
}

}  // namespace
}  // namespace tidekv
