#include <gtest/gtest.h>

#include <string>

#include "model/config.h"
#include "model/weights.h"

namespace tidekv {
namespace {

std::int64_t parameters_of(const std::string& name) {
  return num_parameters(shapes_of(published_shape(name).value()));
}

TEST(PublishedShape, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(parameters_of("llama-3.1-8b"), 8'030'261'248);
  EXPECT_EQ(parameters_of("mistral-7b-v0.2"), 7'241'732'096);
  EXPECT_EQ(parameters_of("smollm2-135m"), 134'515'008);
  EXPECT_EQ(parameters_of("llama-3.2-1b"), 1'235'814'400);
  EXPECT_EQ(parameters_of("qwen2.5-7b"), 7'615'616'512);  // biases on q, k and v among them
  EXPECT_EQ(parameters_of("qwen3-8b"), 8'190'735'360);    // norms of query and key heads
}

TEST(PublishedShape, HasThePublishedKvBytesPerToken) {
  const auto kv_bytes = [](const char* name) {
    const ModelConfig config = published_shape(name).value();
    return 2 * config.num_layers * config.kv_dim() * size_of(*config.dtype);
  };
  EXPECT_EQ(kv_bytes("llama-3.1-8b"), 131'072);
  EXPECT_EQ(kv_bytes("mistral-7b-v0.2"), 131'072);
  EXPECT_EQ(kv_bytes("smollm2-135m"), 23'040);
}

TEST(PublishedShape, ListsTheNamesWhenOneIsUnknown) {
  const auto result = published_shape("llama-9");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(result.error().message,
            "no published shape 'llama-9'; expected one of llama-3.1-8b, mistral-7b-v0.2, "
            "llama-3.2-1b, qwen2.5-7b, qwen3-8b, smollm2-135m");
}

}  // namespace
}  // namespace tidekv
