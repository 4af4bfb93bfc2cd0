#include "model/config_rope.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "model/config_limits.h"

namespace tidekv {
namespace {

using namespace limits;

constexpr NumberRange kFreqFactor = {1e-3, 1e6};
constexpr NumberRange kOne = {1.0, 1.0};

constexpr std::array kKeysOfAnyType = {"rope_type", "type", "rope_theta", "partial_rotary_factor"};
constexpr std::array kKeysOfLinear = {"factor"};
constexpr std::array kKeysOfLlama3 = {"factor", "low_freq_factor", "high_freq_factor",
                                      "original_max_position_embeddings"};

bool contains(const auto& keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

struct NamedType {
  std::string_view name;
  RopeType type;
};
constexpr NamedType kTypes[] = {
    {"default", RopeType::kDefault},
    {"linear", RopeType::kLinear},
    {"llama3", RopeType::kLlama3},
};

// The older key is "type"; some files have both. Without either it is the default.
Result<RopeType> parse_type(const FieldReader& rope) {
  constexpr std::string_view kExpected = "\"default\", \"linear\" or \"llama3\"";
  std::optional<RopeType> type;
  for (const std::string_view key : {"rope_type", "type"}) {
    if (rope.find(key) == nullptr) {
      continue;
    }
    TIDEKV_ASSIGN(const std::string name, rope.string(key, kExpected));
    const auto* named = std::ranges::find(kTypes, name, &NamedType::name);
    if (named == std::end(kTypes)) {
      return rope.error(ErrorCode::kUnsupported, key, kExpected);
    }
    if (type && *type != named->type) {
      return rope.error(ErrorCode::kBadFile, key, "the same as in 'rope_type'");
    }
    type = named->type;
  }
  return type.value_or(RopeType::kDefault);
}

Status check_keys(const FieldReader& rope, RopeType type) {
  for (const JsonMember& member : rope.members()) {
    const bool known = contains(kKeysOfAnyType, member.key) ||
                       (type == RopeType::kLinear && contains(kKeysOfLinear, member.key)) ||
                       (type == RopeType::kLlama3 && contains(kKeysOfLlama3, member.key));
    if (!known && !member.value.is_null()) {
      const auto* named = std::ranges::find(kTypes, type, &NamedType::type);
      return rope.error(ErrorCode::kUnsupported, member.key,
                        "no such key with rope type " + std::string(named->name));
    }
  }
  TIDEKV_TRY(rope.number_or("partial_rotary_factor", kOne, 1.0));
  return Ok{};
}

// `theta`: of the outer config, if it has one.
Result<RopeConfig> parse_object(const FieldReader& rope, std::optional<double> theta) {
  RopeConfig out;
  TIDEKV_ASSIGN(out.type, parse_type(rope));
  TIDEKV_TRY(check_keys(rope, out.type));
  TIDEKV_ASSIGN(out.theta, rope.number_or("rope_theta", kTheta, theta.value_or(out.theta)));
  if (theta && *theta != out.theta) {
    return rope.error(ErrorCode::kBadFile, "rope_theta",
                      "the same as in the outer 'rope_theta', or only one of them");
  }
  if (out.type == RopeType::kDefault) {
    return out;
  }
  TIDEKV_ASSIGN(out.factor, rope.number("factor", kFactor));
  if (out.type == RopeType::kLinear) {
    return out;
  }
  TIDEKV_ASSIGN(out.low_freq_factor, rope.number("low_freq_factor", kFreqFactor));
  TIDEKV_ASSIGN(out.high_freq_factor, rope.number("high_freq_factor", kFreqFactor));
  TIDEKV_ASSIGN(out.original_max_positions,
                rope.integer("original_max_position_embeddings", kPositions));
  if (out.high_freq_factor <= out.low_freq_factor) {
    return rope.error(ErrorCode::kBadFile, "high_freq_factor", "more than 'low_freq_factor'");
  }
  return out;
}

}  // namespace

Result<RopeConfig> parse_rope(const FieldReader& config) {
  std::optional<double> theta;
  if (config.find("rope_theta") != nullptr) {
    TIDEKV_ASSIGN(theta, config.number("rope_theta", kTheta));
  }
  std::optional<RopeConfig> rope;
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    TIDEKV_ASSIGN(const std::optional<FieldReader> object, config.object(key));
    if (!object) {
      continue;
    }
    TIDEKV_ASSIGN(const RopeConfig parsed, parse_object(*object, theta));
    if (rope && *rope != parsed) {
      return config.error(ErrorCode::kBadFile, key,
                          "the same as in 'rope_parameters', or only one of them");
    }
    rope = parsed;
  }
  if (!rope) {
    rope.emplace();
    rope->theta = theta.value_or(rope->theta);
  }
  return *rope;
}

}  // namespace tidekv
