// The rotary part of config.json, as Transformers 4 and 5 write it.
#pragma once

#include "base/field_reader.h"
#include "model/config.h"
#include "tidekv/result.h"

namespace tidekv {

// From rope_theta and rope_scaling (4), rope_parameters (5), or a mixture that does not contradict
// itself. A rope type or key that is not known is refused: ignoring one reads well on short
// prompts and turns long ones to noise.
Result<RopeConfig> parse_rope(const FieldReader& config);

}  // namespace tidekv
