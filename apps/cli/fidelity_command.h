#pragma once

#include <memory>

#include "command.h"

namespace tidekv::cli {

// A command below `tidekv bench`.
std::unique_ptr<Command> make_fidelity_command();

}  // namespace tidekv::cli
