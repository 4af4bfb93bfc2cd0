// The prompts of a sweep as token ids, all of them before the first one runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tidekv/engine.h"
#include "tidekv/result.h"

namespace tidekv::cli {

struct SweepPrompt {
  std::string where;  // "FILE: line 7"
  std::string id;
  std::vector<std::int32_t> tokens;
  std::vector<std::string> answers;  // what a right answer says; empty: nobody asks
};

// `path`: a file of prompt_lines.h; "-": stdin.
Result<std::vector<SweepPrompt>> read_sweep_prompts(const Engine& engine, const std::string& path);

}  // namespace tidekv::cli
